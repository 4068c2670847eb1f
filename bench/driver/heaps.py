# SPDX-License-Identifier: MIT
"""`script/bench heaps`: a std::map on private heaps, on std::pmr's resources, on mallocs and on mimalloc's heaps; and threads on a heap and on malloc."""

import argparse
import json
import random
import subprocess

from . import heaps_table, machine, peers, rows, runs, stats, stored

ROWS = {"map-ordered": "keys ascending, put at the end", "map-random": "keys at random"}
OURS = heaps_table.OURS
MEMORIES = [OURS, "private", "nodes", "monotonic", "unsynchronized", "synchronized", "malloc"]
MIMALLOCS = ["mimalloc3", "mimalloc2", "mimalloc-deb"]
THREADS = [1, 2, 4, 8]
LIVES = {1: "one at a time", 1_000: "1,000, then all back", 10_000: "10,000, then all back"}
THREAD_MEMORIES = ["private", OURS, peers.SYSTEM, peers.OURS]
PAIRS = 4_000_000  # of all threads of a thread row, in each of its rounds


def thread_candidates(names):
    """([(name, the word for heap_thread_rows, what is preloaded) …], {name: reason it is missing})."""
    found, missing = [], {}
    for name in names:
        if name in ("private", OURS):
            found.append((name, name, None))
            continue
        try:
            found.append((name, "malloc", peers.find(name).library))
        except peers.Missing as reason:
            missing[name] = str(reason)
    return found, missing


def candidates(names):
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


def run_maps(program, found, entries, repeat):
    """{row: {"kind": "map", "summary", "runs": {memory: {"fill_ms", "drop_ms", "total_ms", "peak_kib": [...]}}}}, in an order that is mixed anew each time."""
    results = {row: {"kind": "map", "summary": summary, "runs": {name: {"fill_ms": [], "drop_ms": [], "total_ms": [], "peak_kib": []} for name, _, _ in found}}
               for row, summary in ROWS.items()}
    for _ in range(repeat):
        jobs = [(row, candidate) for row in ROWS for candidate in found]
        for row, (name, memory, library) in random.sample(jobs, len(jobs)):
            runs.progress(f"{row} {name}")
            done = subprocess.run([program, row, *memory, str(entries), *library], capture_output=True, text=True, check=True)
            run = json.loads(done.stdout)
            cell = results[row]["runs"][name]
            cell["fill_ms"] += run["fill_ms"]
            cell["drop_ms"] += run["drop_ms"]
            cell["total_ms"] += [f + d for f, d in zip(run["fill_ms"], run["drop_ms"])]
            cell["peak_kib"].append(run["peak_kib"])
    return results


def run_threads(program, found, pairs, repeat):
    """{row: {"kind": "threads", "life", "threads", "runs": {memory: {"user_ns", "wall_ns": [...]}}}}, mixed likewise."""
    results = {f"{life}, {threads}": {"kind": "threads", "life": life, "live": live, "threads": threads,
                                      "runs": {name: {"user_ns": [], "wall_ns": []} for name, _, _ in found}}
               for live, life in LIVES.items() for threads in THREADS}
    for _ in range(repeat):
        jobs = [(row, candidate) for row in results.values() for candidate in found]
        for row, (name, memory, library) in random.sample(jobs, len(jobs)):
            runs.progress(f"{row['life']}, {row['threads']} threads, {name}")
            done = subprocess.run([program, memory, str(row["threads"]), str(row["live"]), str(pairs)],
                                  env=peers.preloaded(library), capture_output=True, text=True, check=True)
            run = json.loads(done.stdout)
            for what, cell in row["runs"][name].items():
                cell += run[what]
    return results


GATE_TRIES = 3
MOST_OF_GLIBC = {1: 1.5, 1_000: 1.0, 10_000: 1.0}  # CPU time of PrivateHeap in its, by blocks at a time


def passes(data):
    """Ratios of interleaved runs with room for noise: the purpose of the heaps."""
    maps = heaps_table.of_kind(data, "map")
    for about in maps.values():
        cells = about["runs"]
        ours = stats.median(cells[OURS]["total_ms"])
        if ours > stats.median(cells["malloc"]["total_ms"]) or ours > 1.5 * stats.median(cells["monotonic"]["total_ms"]):
            return False
    for about in heaps_table.of_kind(data, "threads").values():
        cells = about["runs"]
        if min(cells["private"]["user_ns"]) > MOST_OF_GLIBC[about["live"]] * stats.median(cells[peers.SYSTEM]["user_ns"]):
            return False
    return all(ratio >= 50 for ratio in heaps_table.at_once(maps).values())


def names_of(parser, text, known, needed):
    wanted = [name.strip() for name in text.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no such memory: {', '.join(unknown)}; there are {', '.join(known)}")
    if lacking := [name for name in needed if name not in wanted]:
        parser.error(f"{' and '.join(lacking)} must be named: the others are compared with them")
    return wanted


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench heaps", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the map (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="processes for each cell, of several rounds each")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of the thread rows, in each round (default: %(default)s)")
    parser.add_argument("--memories", default=",".join([*MEMORIES, *MIMALLOCS]), help="comma-separated (default: %(default)s)")
    parser.add_argument("--thread-memories", default=",".join(THREAD_MEMORIES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--gate", action="store_true",
                        help="fail unless heaps beat malloc, come near monotonic, drop 50 times faster, and stay near glibc with threads")
    parser.add_argument("--json", metavar="FILE", help="write every run and the machine's description")
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its tables into docs/heaps.md")
    options = parser.parse_args(arguments)
    options.memories = names_of(parser, options.memories, [*MEMORIES, *MIMALLOCS], [OURS, "nodes"])
    options.thread_memories = names_of(parser, options.thread_memories, THREAD_MEMORIES, ["private", peers.SYSTEM])
    if options.docs and (options.entries, options.pairs) != (1_000_000, PAIRS):
        parser.error("--docs keeps a whole run: not with --entries or --pairs (use --json)")
    return options


def main(arguments):
    options = parse(arguments)
    found, missing = candidates(options.memories)
    with_threads, missing_with_threads = thread_candidates(options.thread_memories)
    rows.build_programs()
    data = {"machine": machine.describe(), "entries": options.entries, "missing": {**missing, **missing_with_threads}}
    program = rows.preset_program("FREEHOLD_HEAP_ROWS", "bench/heaps/heap_rows", "heap_rows", "heap_thread_rows")
    for _ in range(GATE_TRIES):  # ratios of one short run: a disturbed one is made again
        data["rows"] = {**run_maps(program, found, options.entries, options.repeat),
                        **run_threads(program.with_name("heap_thread_rows"), with_threads, options.pairs, options.repeat)}
        if not options.gate or passes(data):
            break
    runs.progress("")
    stored.finish("heaps", heaps_table.render, data, options)
    return 0 if not options.gate or passes(data) else 1
