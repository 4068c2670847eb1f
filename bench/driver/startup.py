# SPDX-License-Identifier: MIT
"""`script/bench startup`: the time and peak memory that a preloaded malloc adds to the start and end of `true`."""

import argparse
import json
import shutil
import subprocess

from . import machine, peers, report, stats, stored
from .rows import PROGRAMS, build_programs


def run(libraries, rounds, command):
    """Interleaved runs: per library (None: plain) the list of (ms, KiB), in the order of the rounds."""
    preloads = [word for library in libraries for word in (["--preload", library] if library else ["--plain"])]
    done = subprocess.run([str(PROGRAMS / "measure"), "--silent", "--rounds", str(rounds), *preloads, "--", *command],
                          capture_output=True, text=True, timeout=300, check=True)
    runs = [[] for _ in libraries]
    for line in done.stdout.splitlines():
        one = json.loads(line)
        if one["status"] != 0:
            raise SystemExit(f"{' '.join(command)} under {libraries[one['preload']]}: exit status {one['status']}")
        runs[one["preload"]].append((one["wall_ns"] / 1e6, one["peak_kib"]))
    return runs


def added(plain, preloaded):
    """Medians of the paired differences: (ms, KiB)."""
    return tuple(stats.median([b[i] - a[i] for a, b in zip(plain, preloaded)]) for i in (0, 1))


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench startup", description=__doc__.splitlines()[0])
    parser.add_argument("--allocators", default=",".join(peers.ALL), help="as for script/bench malloc")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--most", nargs=2, type=float, metavar=("MS", "MIB"), help="fail if any allocator adds more")
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its table into docs/latency.md")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    build_programs()
    allocators, missing = peers.find_all([n for n in options.allocators.split(",") if n != peers.SYSTEM])
    runs = run([None, *(a.library for a in allocators)], options.rounds, [shutil.which("true")])
    results = {a.name: added(runs[0], mine) for a, mine in zip(allocators, runs[1:])}
    plain = [stats.median([r[i] for r in runs[0]]) for i in (0, 1)]
    print(report.table(["start-up of `true`", "ms", "KiB"], [["plain", f"{plain[0]:.3f}", f"{plain[1]:.0f}"]] +
                       [[f"added by {name}", f"{ms:+.3f}", f"{kib:+.0f}"] for name, (ms, kib) in results.items()]))
    for name, reason in missing.items():
        print(f"missing: {name}: {reason}")
    if options.docs:
        stored.keep("startup", {"machine": machine.describe(), "date": machine.today(), "rounds": options.rounds, "missing": missing,
                                "plain": {"ms": plain[0], "kib": plain[1]},
                                "added": {a.name: {"version": a.version, "ms": results[a.name][0], "kib": results[a.name][1]} for a in allocators}})
    if options.most is None:
        return 0
    above = [name for name, (ms, kib) in results.items() if ms > options.most[0] or kib > options.most[1] * 1024]
    for name in above:
        print(f"{name} adds more than {options.most[0]} ms or {options.most[1]} MiB")
    return 1 if above or missing or not results else 0
