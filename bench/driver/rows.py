# SPDX-License-Identifier: MIT
"""The rows: the macro programs of bench/macro, and real programs run whole. Each is a command and a way to read its time."""

import json
import os
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

from .peers import BUILD, ROOT

BUILT_ELSEWHERE = os.environ.get("FREEHOLD_BENCH_PROGRAMS")  # a build of bench/macro; without it we make our own
PROGRAMS = pathlib.Path(BUILT_ELSEWHERE) if BUILT_ELSEWHERE else BUILD / "macro"
INPUTS = pathlib.Path(__file__).resolve().parents[1] / "inputs"


@dataclass(frozen=True)
class Row:
    name: str
    summary: str
    command: tuple
    macro: bool  # a macro row prints its own time as JSON; a real program is timed from outside

    @property
    def unit(self):
        return "ns/op" if self.macro else "ms"


def run_steps(*steps):
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(step)} failed:\n{done.stdout}{done.stderr}")


def build_programs():
    """Builds bench/macro (nothing happens when it is up to date)."""
    if not BUILT_ELSEWHERE:
        run_steps(["cmake", "-S", str(ROOT / "bench" / "macro"), "-B", str(PROGRAMS), "-DCMAKE_BUILD_TYPE=Release"],
                  ["cmake", "--build", str(PROGRAMS), "--parallel", "2"])


def preset_program(variable, path, *targets):
    """The program that the environment's `variable` names, or that of the bench preset at `path`, built now if it is not up to date."""
    if chosen := os.environ.get(variable):
        return pathlib.Path(chosen)
    run_steps(["cmake", "--preset", "bench"], ["cmake", "--build", "--preset", "bench", "--target", *targets])
    return ROOT / "build" / "bench" / path


def macro_rows(scale, program="malloc_rows"):
    """The rows of a program of bench/macro, as it lists them."""
    listing = subprocess.run([PROGRAMS / program, "--list"], capture_output=True, text=True, check=True).stdout
    return [Row(name, summary, (str(PROGRAMS / program), name, str(scale)), True)
            for name, summary in (line.split("\t") for line in listing.splitlines())]


def program_rows():
    """Real programs, each single-process and under a second; those that are not installed are left out."""
    clang = next((c for c in ("clang++-19", "clang++") if shutil.which(c)), None)
    candidates = [
        Row("clang", "a compiler on a C++ file with templates", (clang, "-std=c++20", "-O0", "-c", str(INPUTS / "compile.cpp"),
                                                                  "-o", "/dev/null"), False),
        Row("python", "an interpreter builds and drops dicts, lists and strings",
            ("/usr/bin/python3", "-I", str(INPUTS / "objects.py")), False),
        Row("sqlite", "a database engine: insert, index, join in memory",
            ("sqlite3", "-batch", ":memory:", f".read {INPUTS / 'queries.sql'}"), False),
        Row("z3", "a solver proves a small theorem", ("z3", str(INPUTS / "theorem.smt2")), False),
    ]
    return [row for row in candidates if row.command[0] and shutil.which(row.command[0])]


def read_time(row, printed, measured):
    """Nanoseconds per operation of a macro row; milliseconds of a program."""
    if not row.macro:
        return measured["wall_ns"] / 1e6
    outcome = json.loads(printed)
    return outcome["seconds"] * 1e9 / outcome["operations"]
