# SPDX-License-Identifier: MIT
"""Medians, spreads and ratios of a matrix of runs: pure functions, no I/O."""

import math
import statistics
from dataclasses import dataclass

CPU_RESOLUTION = 1.0  # milliseconds; below it there is only noise


def median(values):
    return statistics.median(values)


def spread(values):
    """Half the distance between the quartiles, relative to the median: how much to believe a difference."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    middle = median(values)
    return (high - low) / 2 / middle if middle else 0.0


def geometric_mean(ratios):
    """Pre: every ratio is positive. Of nothing: NaN."""
    return math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else math.nan


@dataclass(frozen=True)
class Comparison:
    """One row: ours beside the best of the peers, in time, in peak memory and in CPU time."""

    row: str
    time: float
    best_time: float
    fastest: str
    memory: float
    best_memory: float
    smallest: str
    cpu: float  # milliseconds, user and system
    best_cpu: float
    thriftiest: str

    @property
    def time_ratio(self):
        return self.time / self.best_time

    @property
    def memory_ratio(self):
        return self.memory / self.best_memory

    @property
    def cpu_ratio(self):
        """A peer that used no CPU that the kernel's clock could see counts as one tick of its reports."""
        return max(self.cpu, CPU_RESOLUTION) / max(self.best_cpu, CPU_RESOLUTION)


def compare(row, cells, ours):
    """cells: {allocator: (time, memory, CPU time, ...)} of one row. None if ours or all peers are missing."""
    peers = {name: cell for name, cell in cells.items() if name != ours}
    if ours not in cells or not peers:
        return None
    fastest = min(peers, key=lambda name: peers[name][0])
    smallest = min(peers, key=lambda name: peers[name][1])
    thriftiest = min(peers, key=lambda name: peers[name][2])
    return Comparison(row, cells[ours][0], peers[fastest][0], fastest, cells[ours][1], peers[smallest][1], smallest,
                      cells[ours][2], peers[thriftiest][2], thriftiest)


@dataclass(frozen=True)
class Summary:
    time: float  # geometric mean of ours / best peer
    memory: float
    cpu: float
    worst: Comparison | None  # the row with the largest time ratio


def summarise(comparisons):
    worst = max(comparisons, key=lambda c: c.time_ratio, default=None)
    return Summary(geometric_mean([c.time_ratio for c in comparisons]),
                   geometric_mean([c.memory_ratio for c in comparisons]),
                   geometric_mean([c.cpu_ratio for c in comparisons]), worst)


def against_each(cells_by_row, ours):
    """{peer: geometric means of ours/peer in time, memory and CPU time} over the rows that both have."""
    peers = {name for cells in cells_by_row.values() for name in cells} - {ours}
    result = {}
    for peer in peers:
        both = [(cells[ours], cells[peer]) for cells in cells_by_row.values() if ours in cells and peer in cells]
        if both:
            floors = (0, 0, CPU_RESOLUTION)
            result[peer] = tuple(geometric_mean([max(a[i], floor) / max(b[i], floor) for a, b in both])
                                 for i, floor in enumerate(floors))
    return result
