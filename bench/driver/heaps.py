"""`script/bench heaps`: a std::map on private heaps, on std::pmr's resources, on mallocs and on mimalloc's heaps."""

import argparse
import json
import os
import pathlib
import random
import subprocess

from . import machine, peers, report, rows, stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = {"map-ordered": "keys ascending, put at the end", "map-random": "keys at random"}
OURS = "owner-locked"
MEMORIES = [OURS, "private", "nodes", "monotonic", "unsynchronized", "synchronized", "malloc"]
MIMALLOCS = ["mimalloc3", "mimalloc2", "mimalloc-deb"]


def built_program():
    """FREEHOLD_HEAP_ROWS, or the bench preset's, built now if it is not up to date."""
    if chosen := os.environ.get("FREEHOLD_HEAP_ROWS"):
        return chosen
    for step in (["cmake", "--preset", "bench"], ["cmake", "--build", "--preset", "bench", "--target", "heap_rows"]):
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(step)} failed:\n{done.stdout}{done.stderr}")
    return str(ROOT / "build" / "bench" / "bench" / "heaps" / "heap_rows")


def contenders(names):
    """([(name, the words for heap_rows) …], {name: reason it is missing})."""
    found, missing = [], {}
    for name in names:
        if name in MEMORIES:
            found.append((name, [name], []))
            continue
        try:
            found.append((name, ["mi-heap"], [peers.find(name).library]))
        except peers.Missing as reason:
            missing[name] = str(reason)
    return found, missing


def run_all(program, row_names, found, entries, repeat):
    """{row: {contender: {"fill_ms", "drop_ms", "total_ms": [...], "peak_kib": [...]}}}, in an order that is mixed anew each time."""
    results = {row: {name: {"fill_ms": [], "drop_ms": [], "total_ms": [], "peak_kib": []} for name, _, _ in found} for row in row_names}
    for _ in range(repeat):
        jobs = [(row, contender) for row in row_names for contender in found]
        random.shuffle(jobs)
        for row, (name, memory, library) in jobs:
            done = subprocess.run([program, row, *memory, str(entries), *library], capture_output=True, text=True, check=True)
            run = json.loads(done.stdout)
            cell = results[row][name]
            cell["fill_ms"] += run["fill_ms"]
            cell["drop_ms"] += run["drop_ms"]
            cell["total_ms"] += [f + d for f, d in zip(run["fill_ms"], run["drop_ms"])]
            cell["peak_kib"].append(run["peak_kib"])
    return results


def render(results):
    parts = []
    for row, cells in results.items():
        ours = stats.median(cells[OURS]["total_ms"])
        lines = []
        for name, cell in sorted(cells.items(), key=lambda item: stats.median(item[1]["total_ms"])):
            total = stats.median(cell["total_ms"])
            lines.append([name, f"{total:.1f}", f"±{100 * stats.spread(cell['total_ms']):.0f}%", f"{ours / total:.2f}",
                          f"{stats.median(cell['drop_ms']):.3f}", f"{stats.median(cell['peak_kib']) / 1024:.0f}"])
        parts.append(f"{row}: {ROWS[row]}\n"
                     + report.table(["memory", "fill and drop, ms", "", f"{OURS} / it", "drop, ms", "peak, MiB"], lines))
    return "\n\n".join(parts)


def at_once(results):
    """How many times faster release_all() is than destroying node by node, per row."""
    return {row: stats.median(cells["nodes"]["drop_ms"]) / stats.median(cells[OURS]["drop_ms"]) for row, cells in results.items()}


def passes(results):
    """Ratios of interleaved runs with room for noise: what the heaps are for."""
    for row, cells in results.items():
        ours = stats.median(cells[OURS]["total_ms"])
        if ours > stats.median(cells["malloc"]["total_ms"]) or ours > 1.5 * stats.median(cells["monotonic"]["total_ms"]):
            return False
    return all(ratio >= 50 for ratio in at_once(results).values())


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench heaps", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the map (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="processes for each cell, of five rounds each")
    parser.add_argument("--memories", default=",".join([*MEMORIES, *MIMALLOCS]), help="comma-separated (default: %(default)s)")
    parser.add_argument("--gate", action="store_true", help="fail unless heaps beat malloc, come near monotonic, and drop 50 times faster")
    parser.add_argument("--json", metavar="FILE", help="write every run and the machine's description")
    options = parser.parse_args(arguments)
    wanted = [name.strip() for name in options.memories.split(",")]
    if unknown := [name for name in wanted if name not in [*MEMORIES, *MIMALLOCS]]:
        parser.error(f"no such memory: {', '.join(unknown)}; there are {', '.join([*MEMORIES, *MIMALLOCS])}")
    if lacking := [name for name in (OURS, "nodes") if name not in wanted]:
        parser.error(f"--memories must name {' and '.join(lacking)}: the others are compared with them")
    found, missing = contenders(wanted)
    rows.build_programs()
    described = machine.describe()
    results = run_all(built_program(), ROWS, found, options.entries, options.repeat)
    print(machine.one_line(described) + "\n")
    print(render(results) + "\n")
    for row, ratio in at_once(results).items():
        print(f"{row}: release_all() is {ratio:.0f} times faster than destroying node by node")
    for name, reason in missing.items():
        print(f"missing: {name}: {reason}")
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"machine": described, "entries": options.entries, "missing": missing, "rows": results}, indent=1) + "\n")
    return 0 if not options.gate or passes(results) else 1
