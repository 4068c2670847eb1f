# SPDX-License-Identifier: MIT
"""The cases without the doctor: each program with one thread and with two, and with other mallocs preloaded. `run.py --by-hand`.

What a head says under `Seen:` came from here: ratios of the least of several runs, in turn.
"""

import os
import subprocess
import time

PRELOADS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}


def run_once(case, command, threads, preload=None):
    """Wall and CPU time of one run, and the peak of memory in MiB."""
    words = [word.replace("{n}", str(threads)) for word in (*command, *case.arguments)]
    environment = dict(os.environ, **{name: value.replace("{n}", str(threads)) for name, value in case.environment.items()})
    if preload:
        environment["LD_PRELOAD"] = preload
    if "{n}" not in " ".join(case.arguments) and not case.variable:
        words = ["taskset", "-c", ",".join(str(cpu) for cpu in range(threads)), *words]
    start = time.monotonic()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if process.returncode:
        raise RuntimeError(f"{case.name}: ended with {process.returncode}")
    return wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024


def speedup(case, command, times=3):
    """How many times as fast two threads are as one: the least of some runs each, in turn."""
    runs = {1: [], 2: []}
    for _ in range(times):
        for threads in runs:
            runs[threads].append(run_once(case, command, threads)[0])
    return min(runs[1]) / min(runs[2])


def examine(case, command, times):
    """Prints one line: how it scales, where its CPU time is, and what other mallocs change."""
    runs = {}
    for _ in range(times):
        for name, threads, preload in (("one", 1, None), ("two", 2, None), *((name, 2, file) for name, file in PRELOADS.items())):
            runs.setdefault(name, []).append(run_once(case, command, threads, preload))
    least = {name: min(values) for name, values in runs.items()}
    wall, user, system, peak = least["two"]
    others = ", ".join(f"{name} {wall / least[name][0]:.2f}" for name in PRELOADS)
    print(f"{case.name:32} {wall:5.2f} s  2 threads {least['one'][0] / wall:.2f} times as fast as 1, {(user + system) / wall:.1f} CPUs busy, "
          f"kernel {system / max(user + system, 1e-9):.0%}; against glibc: {others}; {peak:.0f} MiB", flush=True)
