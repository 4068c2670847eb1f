#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts how many of the 116 programs of mimalloc-bench's bench/security a malloc stops, or survives, at the moment of the misuse.

  tests/misuse/field.py FOLDER                       glibc, FOLDER being a copy of bench/security
  tests/misuse/field.py FOLDER LIBRARY [NAME=VALUE…] a malloc to preload, with environment variables; --list says which programs are not

42 sources, the 37 in C with blocks of 8 bytes, 4 KiB and 256 KiB. A program that prints NOT_CAUGHT was not stopped; "late" if it then ended
in an abort or a fault, which does not count. None of the sources is part of Freehold. Exit code 2: no such folder.
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

SIZES = {"small": "8", "medium": "4096", "large": "256*1024"}
FLAGS = ["-w", "-O3", "-DNDEBUG", "-fno-inline", "-fno-builtin-inline", "-fno-inline-small-functions", "-fno-ipa-pure-const"]


def build(folder, into):
    """The programs' paths."""
    jobs = [(source, f"{source.stem}_{name}", ["gcc", *FLAGS, f"-DALLOCATION_SIZE={size}"])
            for source in folder.glob("*.c") for name, size in SIZES.items()]
    jobs += [(source, source.stem, ["g++", "-w", "-O3", "-std=c++17", "-fsized-deallocation", "-DALLOCATION_SIZE=4096"]) for source in folder.glob("*.cc")]
    for source, name, command in jobs:
        subprocess.run([*command, source, "-o", into / name], check=True)
    return sorted(into / name for _, name, _ in jobs)


def class_of(program, environment):
    try:
        done = subprocess.run([program], env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if b"NOT_CAUGHT" not in done.stdout:
        return "stopped or survived"
    return "late" if done.returncode else "not seen"


def main(arguments):
    listed = "--list" in arguments
    arguments = [word for word in arguments if word != "--list"]
    if not arguments or not list(pathlib.Path(arguments[0]).glob("double_free.c")):
        print("field.py: give the folder bench/security of a copy of mimalloc-bench", file=sys.stderr)
        return 2
    environment = {**os.environ, **dict(word.split("=", 1) for word in arguments[2:])}
    if arguments[1:]:
        environment["LD_PRELOAD"] = os.path.abspath(arguments[1])
    with tempfile.TemporaryDirectory() as folder:
        found = {program.name: class_of(program, environment) for program in build(pathlib.Path(arguments[0]), pathlib.Path(folder))}
    for name, result in found.items():
        if listed and result != "stopped or survived":
            print(f"{result}: {name}")
    print(", ".join(f"{result}: {count}" for result, count in sorted(collections.Counter(found.values()).items())), f"of {len(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
