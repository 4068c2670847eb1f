# SPDX-License-Identifier: MIT
"""`script/bench instructions`: how many instructions malloc(12) and its free execute, counted by callgrind.

A program calls malloc and free N times through one function each, and then 2N times. What those functions' calls cost more the
second time, divided by N, is the cost of one call: start-up, first use and the loop cancel out. Counts do not depend on
the machine's load, so they serve as a golden.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import machine, peers, report, stored
from .rows import PROGRAMS, build_programs

PAIRS = 2000
CALLERS = {"malloc": "fast_path_allocate", "free": "fast_path_free"}

POSITION = re.compile(r"^(fn|cfn)=\((\d+)\)(?: (.*))?$")


def cost_of_calls(profile, caller):
    """Instructions of everything that `caller` called, from the text of a callgrind profile."""
    names, current, total, next_is_call = {}, None, 0, False
    for line in profile.splitlines():
        match = POSITION.match(line)
        if match:
            kind, number, name = match.groups()
            if name is not None:
                names[number] = name
            if kind == "fn":
                current = names[number]
        elif line.startswith("calls="):
            next_is_call = True
        elif next_is_call:
            next_is_call = False
            if current == caller:
                total += int(line.split()[1])
    return total


def without_debug_info(binary, folder):
    """A copy that valgrind can read: Debian's valgrind gives up on the debug information of newer compilers."""
    copy = pathlib.Path(folder, pathlib.Path(binary).name)
    subprocess.run(["objcopy", "--strip-debug", str(binary), str(copy)], check=True)
    return str(copy)


def callgrind(program, library, arguments, folder):
    """The process that ran under callgrind; its profile is a file of the folder."""
    environment = {**peers.preloaded(library), "LD_BIND_NOW": "1"}  # the linker's work at a function's first call is not the function's
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/profile", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 or not pathlib.Path(folder, "profile").exists():
        raise peers.Missing(f"{' '.join(map(str, arguments))} does not run under valgrind: exit status {done.returncode}")
    return done


def profile(*what, folder):
    callgrind(*what, folder)
    return pathlib.Path(folder, "profile").read_text()


def count(library, size, pairs=PAIRS):
    """{"malloc": instructions, "free": instructions} of one call each."""
    with tempfile.TemporaryDirectory() as folder:
        program = without_debug_info(PROGRAMS / "fast_path", folder)
        library = without_debug_info(library, folder) if library else None
        once, twice = (profile(program, library, (n, size), folder=folder) for n in (pairs, 2 * pairs))
    return {name: (cost_of_calls(twice, caller) - cost_of_calls(once, caller)) / pairs for name, caller in CALLERS.items()}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench instructions", description=__doc__.splitlines()[0])
    parser.add_argument("--allocators", default=",".join(peers.ALL), help="as for script/bench malloc")
    parser.add_argument("--size", type=int, default=12, help="bytes per block (default: %(default)s)")
    parser.add_argument("--most", nargs=2, type=float, metavar=("MALLOC", "FREE"), help="fail if any allocator needs more")
    parser.add_argument("--docs", action="store_true", help="keep the counts in docs/benchmarks and write their table into docs/latency.md")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed")
    build_programs()
    allocators, missing = peers.find_all(options.allocators.split(","))
    counted = {}
    for allocator in allocators:
        try:
            counted[allocator.name] = count(allocator.library, options.size)
        except peers.Missing as reason:
            missing[allocator.name] = str(reason)
    print(report.table([f"instructions, {options.size} bytes", "malloc", "free"],
                       [[name, f"{c['malloc']:.2f}", f"{c['free']:.2f}"] for name, c in counted.items()]))
    for name, reason in missing.items():
        print(f"missing: {name}: {reason}")
    if options.docs:
        stored.keep("instructions", {"machine": machine.describe(), "date": machine.today(), "bytes": options.size, "missing": missing,
                                     "instructions": {a.name: {"version": a.version, **counted[a.name]} for a in allocators if a.name in counted}})
    if options.most is None:
        return 0
    above = [name for name, c in counted.items() if c["malloc"] > options.most[0] or c["free"] > options.most[1]]
    for name in above:
        print(f"{name} needs more than {options.most[0]:.0f} for malloc or {options.most[1]:.0f} for free")
    return 1 if above or missing or not counted else 0
