# SPDX-License-Identifier: MIT
"""`script/bench malloc`: mallocs side by side on every row."""

import argparse
import pathlib

from . import machine, peers, report, runs, stats, stored
from . import rows as catalogue
from .refusal import check_writable, refuse

QUICK_SCALE = 0.1


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="script/bench malloc", description=__doc__,
        epilog="One row for two allocators: script/bench malloc --rows pair --allocators freehold,snmalloc")
    parser.add_argument("--rows", help="comma-separated names or prefixes (default: all)")
    parser.add_argument("--allocators", default=",".join(peers.ALL),
                        help="comma-separated; any library as name=/path/to/library.so (default: %(default)s)")
    parser.add_argument("--repeat", "--rounds", type=int, default=5, help="repetitions; rows shorter than 0.15 s get three times as many")
    parser.add_argument("--quick", action="store_true", help="one repetition at a tenth of the size: a smoke test")
    parser.add_argument("--json", metavar="FILE", help="write every run and the machine's description")
    parser.add_argument("--docs", action="store_true",
                        help="keep the run in docs/benchmarks and write its tables into docs/benchmarks.md and README.md")
    parser.add_argument("--ours", default=peers.OURS, help="the allocator that is compared with the others")
    parser.add_argument("--gate", type=float, metavar="RATIO",
                        help="fail if a run failed, or the geometric mean of our time against the best peers is above this")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    options = parser.parse_args(arguments)
    if options.docs and (options.rows or options.quick):
        parser.error("--docs keeps a whole run: not with --rows or --quick (use --json)")
    return options


def select(rows, wanted):
    """The rows that have one of the names, or begin with it."""
    if not wanted:
        return rows
    names = [name.strip() for name in wanted.split(",")]
    unknown = [n for n in names if not any(row.name.startswith(n) for row in rows)]
    if unknown:
        refuse(f"no such row: {', '.join(unknown)}; there are {', '.join(row.name for row in rows)}")
    exact = {row.name for row in rows}
    return [row for row in rows if any(row.name == n or (n not in exact and row.name.startswith(n)) for n in names)]


def rounded(values):
    """Four digits: beyond is noise, and a stored run is small."""
    return [float(f"{value:.4g}") for value in values]


def as_json(matrix, rows, allocators, missing, ours, described):
    compared = report.comparisons(matrix, ours)
    total = stats.summarise(compared)
    summary = {"time": round(total.time, 3), "peak": round(total.memory, 3), "cpu": round(total.cpu, 3),
               "worst": total.worst.row} if compared else None
    return {
        "machine": described,
        "allocators": {a.name: {"version": a.version, "source": a.source} for a in allocators},
        "missing": missing,
        "summary": summary,
        "rows": {row.name: {"unit": row.unit, "summary": row.summary,
                            "runs": {name: {"times": rounded(c.times), "peaks_mib": rounded(c.peaks), "user_ms": rounded(c.users),
                                            "system_ms": rounded(c.systems), "faults": c.faults, "error": c.error}
                                     for name, c in matrix[row.name].items()}} for row in rows},
    }


def passes(matrix, ours, most):
    """A ratio of interleaved runs, so that it holds on a slow or busy machine as well."""
    compared = report.comparisons(matrix, ours)
    return len(compared) == len(matrix) and not report.failures(matrix, {}) and stats.summarise(compared).time <= most


def main(arguments):
    options = parse(arguments)
    check_writable(options.json)
    catalogue.build_programs()
    rows = select(catalogue.macro_rows(QUICK_SCALE if options.quick else 1) + catalogue.program_rows(), options.rows)
    if options.list:
        print(report.table(["row", "what"], [[row.name, row.summary.ljust(60)] for row in rows]))
        return 0
    allocators, missing = peers.find_all([name.strip() for name in options.allocators.split(",")])
    described = machine.describe()
    matrix = runs.run_matrix(rows, allocators, 1 if options.quick else options.repeat, options.quick)
    print(machine.one_line(described) + "\n")
    print(report.render(matrix, rows, allocators, missing, options.ours))
    if options.json:
        pathlib.Path(options.json).write_text(
            stored.dumps(as_json(matrix, rows, allocators, missing, options.ours, described)))
    if options.docs:
        stored.keep("malloc", as_json(matrix, rows, allocators, missing, options.ours, described))
    return 0 if options.gate is None or passes(matrix, options.ours, options.gate) else 1
