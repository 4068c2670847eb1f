# SPDX-License-Identifier: MIT
"""`script/bench latency`: how long single calls of malloc and free take, as a distribution."""

import argparse
import json
import random
import subprocess

from . import latency_table, machine, peers, runs, stored
from .refusal import check_writable, refuse
from .rows import build_programs, macro_rows

DEFAULT_REPEAT = 3


def run_once(mix, allocator, cell, timeout=120):
    try:
        done = subprocess.run(mix.command, env=peers.preloaded(allocator.library, allocator.name), capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        cell["error"] = f"no end after {timeout} s"
        return
    if done.returncode != 0:
        cell["error"] = f"exit status {done.returncode} {done.stderr.strip()[-200:]}".strip()
        return
    printed = json.loads(done.stdout)
    cell["ns"].append({call: printed[call]["ns"] for call in ("malloc", "free")})


def measure(chosen, allocators, repeat):
    """{mix: {"summary", "runs": {allocator: {"ns": [{"malloc": quantiles, "free": quantiles} …], "error"}}}}, interleaved."""
    results = {}
    for mix in chosen:
        found = allocators if mix.name != "clock" else [a for a in allocators if a.name == peers.SYSTEM] or allocators[:1]
        cells = {a.name: {"ns": [], "error": None} for a in found}
        for _ in range(repeat):
            for allocator in random.sample(found, len(found)):
                if cells[allocator.name]["error"] is None:
                    runs.progress(f"{mix.name} {allocator.name}")
                    run_once(mix, allocator, cells[allocator.name])
        results[mix.name] = {"summary": mix.summary, "runs": cells}
    runs.progress("")
    return results


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench latency", description=__doc__)
    parser.add_argument("--mixes", help="comma-separated names (default: all)")
    parser.add_argument("--allocators", default=",".join(peers.ALL), help="as for script/bench malloc")
    parser.add_argument("--repeat", "--rounds", type=int, default=DEFAULT_REPEAT, help="runs of each (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one run at a tenth of the size: a smoke test")
    parser.add_argument("--json", metavar="FILE", help="write every run and the machine's description")
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its tables into docs/latency.md")
    options = parser.parse_args(arguments)
    if options.docs and (options.mixes or options.quick):
        parser.error("--docs keeps a whole run: not with --mixes or --quick (use --json)")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


def main(arguments):
    options = parse(arguments)
    check_writable(options.json)
    build_programs()
    known = macro_rows(0.1 if options.quick else 1, "latency")
    wanted = [name.strip() for name in options.mixes.split(",")] if options.mixes else [mix.name for mix in known]
    if unknown := [name for name in wanted if name not in {mix.name for mix in known}]:
        refuse(f"no such mix: {', '.join(unknown)}; there are {', '.join(mix.name for mix in known)}")
    allocators, missing = peers.find_all([name.strip() for name in options.allocators.split(",")])
    data = {"machine": machine.describe(), "allocators": {a.name: {"version": a.version, "source": a.source} for a in allocators},
            "missing": missing}
    data["rows"] = measure([mix for mix in known if mix.name in wanted], allocators, 1 if options.quick else options.repeat)
    stored.finish("latency", latency_table.render, data, options)
    return 1 if any(cell["error"] for about in data["rows"].values() for cell in about["runs"].values()) else 0
