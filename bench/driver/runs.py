# SPDX-License-Identifier: MIT
"""Runs rows under allocators: interleaved, each repetition in a new shuffled order (the first job of a batch can be slow)."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field

from . import peers, stats
from .rows import PROGRAMS, read_time

SHORT_SECONDS = 0.15  # rows below this are cheap and noisy: they are repeated more often
MORE = 3


@dataclass
class Cell:
    """All runs of one row under one allocator."""

    times: list = field(default_factory=list)
    peaks: list = field(default_factory=list)  # MiB
    users: list = field(default_factory=list)  # milliseconds of CPU in the program, all its threads, of the whole process
    systems: list = field(default_factory=list)  # milliseconds of CPU in the kernel
    faults: list = field(default_factory=list)
    walls: list = field(default_factory=list)  # seconds, of the whole process
    error: str | None = None

    @property
    def usable(self):
        return self.error is None and bool(self.times)

    def each(self, of):
        """of() each: (time, peak memory, CPU time in the program and in the kernel, page faults)."""
        return of(self.times), of(self.peaks), of([user + system for user, system in zip(self.users, self.systems)]), of(self.faults)

    @property
    def medians(self):
        return self.each(stats.median)

    @property
    def minima(self):
        """The runs that the machine's other work disturbed least."""
        return self.each(min)


def run_once(row, allocator, cell, timeout=120):
    measure = [str(PROGRAMS / "measure")] + ([] if row.macro else ["--silent"])
    measure += ["--preload", allocator.library] if allocator.library else ["--plain"]
    try:
        done = subprocess.run(measure + ["--", *row.command], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **peers.ENVIRONMENT.get(allocator.name, {})}, check=False)
    except subprocess.TimeoutExpired:
        cell.error = f"no end after {timeout} s"
        return
    lines = done.stdout.strip().splitlines()
    measured = json.loads(lines[-1]) if lines else {"status": "unknown"}
    if measured["status"] != 0:
        cell.error = f"exit status {measured['status']} {done.stderr.strip()[-200:]}".strip()
        return
    cell.times.append(read_time(row, lines[0], measured))
    cell.peaks.append(measured["peak_kib"] / 1024)
    cell.users.append(measured["user_us"] / 1e3)
    cell.systems.append(measured["system_us"] / 1e3)
    cell.faults.append(measured["faults"])
    cell.walls.append(measured["wall_ns"] / 1e9)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_matrix(rows, allocators, repeat, quick=False):
    """{row name: {allocator name: Cell}}. If interrupted, it returns the finished runs."""
    matrix = {row.name: {a.name: Cell() for a in allocators} for row in rows}
    try:
        for row in rows:
            run_row(row, allocators, repeat, quick, matrix[row.name])
    except KeyboardInterrupt:
        print("\ninterrupted: only the finished runs follow", file=sys.stderr)
    progress("")
    return matrix


def run_row(row, allocators, repeat, quick, cells):
    """Paired: within a repetition all allocators follow each other on the same row."""
    done, wanted = 0, repeat
    while done < wanted:
        order = random.sample(allocators, len(allocators))
        for allocator in order:
            if cells[allocator.name].error is None:
                progress(f"{row.name} {done + 1}/{wanted} {allocator.name}")
                run_once(row, allocator, cells[allocator.name])
        done += 1
        if done == 1 and not quick:
            slowest = max((max(c.walls) for c in cells.values() if c.usable), default=0)
            wanted = repeat * MORE if slowest < SHORT_SECONDS else repeat
