# SPDX-License-Identifier: MIT
"""`script/bench processes`: empty tasks of 1 KiB through the process pool, gearmand and Python's ProcessPoolExecutor."""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from . import machine, stored
from .rows import build_programs, preset_program

WORKERS, CLIENTS, BYTES = 4, 8, 1024


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Gearmand:
    """A job server of one's own on a free port of the loopback, as docs/process.md wants it started."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory()
        program = shutil.which("gearmand") or "/usr/sbin/gearmand"
        self._process = subprocess.Popen([program, "-L", "127.0.0.1", "-p", str(self.port), "-j", "3",
                                          "-l", self._folder.name + "/log"])
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.close()
        raise SystemExit("gearmand does not come up")

    def close(self):
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def echo(data):
    return data


def executor_rate(seconds):
    """Threads that call and wait, as the other candidates have them."""
    counts, data, over = [0] * CLIENTS, b"x" * BYTES, threading.Event()
    with concurrent.futures.ProcessPoolExecutor(WORKERS) as pool:
        for future in [pool.submit(echo, data) for _ in range(WORKERS)]:
            future.result()

        def client(index):
            while not over.is_set():
                if len(pool.submit(echo, data).result()) != BYTES:
                    raise SystemExit("ProcessPoolExecutor: a wrong result")
                counts[index] += 1

        threads = [threading.Thread(target=client, args=(index,)) for index in range(CLIENTS)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        over.set()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.monotonic() - begin)


def measure(folder, gearmand, seconds):
    """One set: {candidate: tasks a second}, and the round trip's row."""
    rates, trip = {}, None
    for row in rows_of([folder / "process_rows", str(seconds)]):
        if row["row"] == "round trip":
            trip = row
        else:
            rates["Freehold" if row["under_way"] == 1 else f"Freehold, {row['under_way']} futures each"] = row["tasks_per_second"]
    if gearmand:
        rates["gearmand"] = rows_of([folder / "gearman_rows", str(gearmand.port), str(seconds)])[0]["tasks_per_second"]
    rates["ProcessPoolExecutor"] = executor_rate(seconds)
    return rates, trip


def print_table(sets, trips):
    base = [rates["Freehold"] for rates in sets]
    print(f"tasks of {BYTES} bytes in and out, {WORKERS} workers, {CLIENTS} client threads; medians of {len(sets)} sets\n")
    print(f"{'':28} {'tasks a second':>14} {'Freehold is':>12}   least to greatest")
    for name in sets[0]:
        rates = [rates[name] for rates in sets]
        ratios = [b / r for b, r in zip(base, rates)]
        print(f"{name:28} {statistics.median(rates):>14,.0f} {statistics.median(ratios):>11.2f}x   {min(rates):,.0f} to {max(rates):,.0f}")
    median = {key: statistics.median(trip[key] for trip in trips) for key in ("microseconds", "ping_pong_microseconds", "ratio")}
    print(f"\none round trip {median['microseconds']:.1f} us; a bare futex ping-pong between two processes "
          f"{median['ping_pong_microseconds']:.1f} us: {median['ratio']:.2f} times")


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench processes", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="sets [3]")
    parser.add_argument("--seconds", type=float, default=2, help="of each throughput [2]")
    parser.add_argument("--json", type=pathlib.Path, help="also write every set")
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its table into docs/process.md")
    chosen = parser.parse_args(arguments)
    folder = preset_program("FREEHOLD_PROCESS_ROWS", "bench/process/process_rows", "process_bench").parent
    gearmand = Gearmand() if (folder / "gearman_rows").exists() else None
    if not gearmand:
        print("gearmand is left out: libgearman-dev was not there when this was built")
    sets, trips = [], []
    try:
        for _ in range(chosen.repeat):
            rates, trip = measure(folder, gearmand, chosen.seconds)
            sets.append(rates)
            trips.append(trip)
    finally:
        if gearmand:
            gearmand.close()
    print_table(sets, trips)
    if chosen.json:
        chosen.json.write_text(json.dumps({"sets": sets, "round_trips": trips}, indent=1) + "\n", encoding="utf-8")
    if chosen.docs:
        build_programs()  # one of them measures the machine
        stored.keep("processes", {"machine": machine.describe(), "date": machine.today(), "sets": sets, "round_trips": trips})
    return 0
