# SPDX-License-Identifier: MIT
"""`script/bench floors`: lower bounds for every malloc on this machine: a bare ring, a locked instruction, the first touch of memory."""

import argparse
import subprocess

from . import machine, report, stored
from .rows import PROGRAMS, build_programs


def measure():
    """{floor: {"unit", "least", "median", "most"}}."""
    done = subprocess.run([PROGRAMS / "floors"], capture_output=True, text=True, timeout=300, check=True)
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return {name: {"unit": unit, "least": float(least), "median": float(median), "most": float(most)}
            for name, unit, least, median, most in lines}


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench floors", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its table into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    build_programs()
    data = {"machine": machine.describe(), "floors": measure()}
    stored.finish("floors", report.floors, data, options)
    return 0
