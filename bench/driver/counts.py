# SPDX-License-Identifier: MIT
"""`script/bench counts`: instructions, page faults and peak memory of rows, which do not depend on the machine's load.

Instructions: callgrind counts a row of one thread at two sizes; the difference, divided by the operations, is the cost of one
operation with the row's own loop. Faults and peak memory: the median of three plain runs. `--check` compares with the
figures that bench/counts.json keeps, and fails on what has become worse by more than TOLERANCE in each of ATTEMPTS counts: a
loaded machine only adds, since the helper thread and the delayed return go by the clock. What has become better by more is
reported, so that `--store` keeps it.
"""

import argparse
import json
import pathlib
import re
import shutil
import tempfile

from . import machine, peers, report, runs, stats
from .instructions import callgrind, without_debug_info
from .refusal import refuse
from .rows import PROGRAMS, build_programs, macro_rows, program_rows

STORED = pathlib.Path(__file__).resolve().parents[1] / "counts.json"
# The scale of the smaller run under callgrind: a few hundred thousand operations, and two seconds under callgrind at most.
INSTRUCTIONS = {"pair": 0.01, "short_polluted_1t": 0.02, "long_fresh_1t": 0.1, "long_polluted_1t": 0.1, "random_free_1t": 0.1, "lists_1t": 0.02,
                "dropped_1t": 0.05, "large_1t": 0.02, "buffers_1t": 0.02, "grow_1t": 0.1, "strings_1t": 0.05, "json_1t": 0.05,
                "requests_1t": 0.05}
# The scale of the plain runs; real programs have none, and those that are not installed are left out. Rows of threads, whose faults vary by
# chance, are there for their order of magnitude.
FAULTS = {"pair": 0.1, "dropped_1t": 1, "lists_1t": 0.2, "lists_4t": 0.2, "random_free_1t": 1, "stress": 0.5, "exchange_2x2": 0.5, "mixed": 0.2,
          "large_1t": 0.3, "buffers_1t": 0.3, "mappings_1t": 0.3, "grow_1t": 0.5, "grow_4t": 0.5, "requests_1t": 0.5, "requests_8t_2cpus": 0.5,
          "clang": None, "python": None, "sqlite": None, "z3": None}
RUNS = 3
# How much worse a figure may be: the ratio, and an amount that is noise.
TOLERANCE = {"instructions": (1.03, 0.5), "faults": (1.25, 150), "peak_mib": (1.2, 1.0)}
BY_CHANCE = {"faults": (1.6, 300), "peak_mib": (1.35, 1.0)}  # the same of rows of several threads
BY_CLOCK = {"large_1t", "buffers_1t", "grow_1t"}  # what goes back, and is mapped again, depends on the time that passes
CLOCK_TOLERANCE = (1.06, 0.5)
ATTEMPTS = 3


def executed(program, library, arguments, folder):
    """(instructions of the process, operations) under callgrind."""
    done = callgrind(program, library, arguments, folder)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1]), json.loads(done.stdout)["operations"]


def instructions(library, row, scale):
    with tempfile.TemporaryDirectory() as folder:
        program = without_debug_info(PROGRAMS / "malloc_rows", folder)
        library = without_debug_info(library, folder) if library else None
        small, large = (executed(program, library, (row, s), folder) for s in (scale, 3 * scale))
    return (large[0] - small[0]) / (large[1] - small[1])


def faults_and_peak(allocator, row):
    cell = runs.Cell()
    for _ in range(RUNS):
        runs.run_once(row, allocator, cell)
    if not cell.usable:
        raise peers.Missing(f"{row.name}: {cell.error}")
    return stats.median(cell.faults), stats.median(cell.peaks)


def count(allocator, wanted):
    """{row: {figure: value}}"""
    found = {}
    for name, scale in INSTRUCTIONS.items():
        if wanted(name):
            runs.progress(f"{allocator.name}: instructions of {name}")
            found.setdefault(name, {})["instructions"] = round(instructions(allocator.library, name, scale), 1)
    for name, scale in FAULTS.items():
        if wanted(name):
            runs.progress(f"{allocator.name}: faults of {name}")
            for row in macro_rows(scale) if scale else program_rows():
                if row.name == name:
                    faults, peak = faults_and_peak(allocator, row)
                    found.setdefault(name, {}).update(faults=round(faults), peak_mib=round(peak, 1))
    runs.progress("")
    return found


def tolerance(row, figure):
    if figure == "instructions" and row in BY_CLOCK:
        return CLOCK_TOLERANCE
    return TOLERANCE[figure] if row.endswith("_1t") or row == "pair" else BY_CHANCE[figure]


def changes(stored, found):
    """(what has become worse, what has become better): lines of text."""
    worse, better = [], []
    for row, figures in found.items():
        for figure, value in figures.items():
            before = stored.get(row, {}).get(figure)
            if before is None:
                worse.append(f"{row}: no {figure} are stored; run script/bench counts --store")
                continue
            ratio, noise = tolerance(row, figure)
            line = f"{row}: {figure} {before:g} before, {value:g} now ({value / before if before else 0:.2f})"
            if value > before * ratio + noise:
                worse.append(line)
            elif value * ratio + noise < before:
                better.append(line)
    return worse, better


def least(first, second):
    return {row: {figure: min(value, second.get(row, {}).get(figure, value)) for figure, value in figures.items()} for row, figures in first.items()}


def count_again(stored, found, recount):
    """`found`, where rows that are worse than stored have the least of further counts by recount(wanted)."""
    for _ in range(ATTEMPTS - 1):
        suspects = {line.split(":")[0] for line in changes(stored, found)[0]}
        if not suspects:
            break
        found = {**found, **least({row: found[row] for row in suspects}, recount(suspects.__contains__))}
    return found


def render(counted):
    names = list(counted)
    lines = [[row, figure, *(f"{counted[n].get(row, {}).get(figure, float('nan')):g}" for n in names)]
             for row, figures in counted[names[0]].items() for figure in figures]
    return report.table(["row", "per run; instructions: per operation", *names], lines)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench counts", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", help="comma-separated names (default: all)")
    parser.add_argument("--allocators", default=peers.OURS, help="as for script/bench malloc; the first one is checked or stored")
    parser.add_argument("--check", action="store_true", help=f"exit code 1 if a figure is worse than in {STORED.name}")
    parser.add_argument("--store", action="store_true", help=f"write the figures to {STORED.name}")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if shutil.which("valgrind") is None:
        refuse("valgrind is not installed: script/bootstrap test")
    names = None if options.rows is None else options.rows.split(",")
    unknown = set(names or ()) - set(INSTRUCTIONS) - set(FAULTS)
    if unknown:
        refuse(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(dict.fromkeys([*INSTRUCTIONS, *FAULTS]))}")
    build_programs()
    allocators, missing = peers.find_all(options.allocators.split(","))
    if missing:
        refuse("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    counted = {a.name: count(a, lambda row: names is None or row in names) for a in allocators}
    first = allocators[0]
    if options.check:
        counted[first.name] = count_again(stored, counted[first.name], lambda wanted: count(first, wanted))
    print(machine.one_line(machine.describe()) + "\n")
    print(render(counted))
    ours = counted[first.name]
    if options.store:
        merged = {row: {**stored.get(row, {}), **ours.get(row, {})} for row in dict.fromkeys([*stored, *ours])}
        STORED.write_text("{\n" + ",\n".join(f' "{row}": {json.dumps(figures)}' for row, figures in merged.items()) + "\n}\n")
        return 0
    if not options.check:
        return 0
    worse, better = changes(stored, ours)
    for title, lines in (("worse than stored", worse), ("better than stored: keep it by script/bench counts --store", better)):
        if lines:
            print(f"\n{title}\n  " + "\n  ".join(lines))
    return 1 if worse else 0
