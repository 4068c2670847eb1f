# SPDX-License-Identifier: MIT
"""The tables of `script/bench latency`, from its stored form."""

from . import report, stats
from .peers import Allocator

QUANTILES = ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "worst"]


def short(ns):
    """Nanoseconds in three digits: 14, 1.2k, 3.4M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if ns >= size:
            return f"{report.number(ns / size) if ns < 100 * size else round(ns / size)}{unit}"
    return f"{ns:.0f}"


def medians(runs, call):
    """Of each quantile over the runs; the worst is the worst of all."""
    columns = list(zip(*(run[call] for run in runs)))
    return [stats.median(column) for column in columns[:-1]] + [max(columns[-1])]


def one_mix(name, about, allocators):
    lines = []
    for allocator in allocators:
        cell = about["runs"].get(allocator.name)
        if cell is None:
            continue
        if cell["error"]:
            lines.append([allocator.label, "failed", *[""] * (2 * len(QUANTILES) - 1)])
            continue
        lines.append([allocator.label, *map(short, medians(cell["ns"], "malloc")), *map(short, medians(cell["ns"], "free"))])
    header = ["", *(f"malloc\n{q}" if i == 0 else f"\n{q}" for i, q in enumerate(QUANTILES)),
              *(f"free\n{q}" if i == 0 else f"\n{q}" for i, q in enumerate(QUANTILES))]
    return f"{name}: {about['summary']}\n{report.table(header, lines)}"


def render(data):
    allocators = [Allocator(name, None, about["version"], about["source"]) for name, about in data["allocators"].items()]
    parts = [report.versions(allocators), "nanoseconds (k: 1,000, M: 1,000,000); medians of the runs' quantiles, the worst call of all runs"]
    parts += [one_mix(name, about, allocators) for name, about in data["rows"].items()]
    parts += [f"missing: {name}: {reason}" for name, reason in data["missing"].items()]
    parts += [f"failed: {mix} under {name}: {cell['error']}" for mix, about in data["rows"].items()
              for name, cell in about["runs"].items() if cell["error"]]
    return "\n\n".join(parts)
