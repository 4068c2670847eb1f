# SPDX-License-Identifier: MIT
"""The tables of `script/bench heaps`, from its stored form."""

from . import report, stats

OURS = "owner-locked"


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def maps(rows):
    parts = []
    for name, about in rows.items():
        runs = about["runs"]
        ours = stats.median(runs[OURS]["total_ms"])
        lines = []
        for memory, cell in sorted(runs.items(), key=lambda item: stats.median(item[1]["total_ms"])):
            total = stats.median(cell["total_ms"])
            lines.append([memory, f"{total:.1f}", f"±{100 * stats.spread(cell['total_ms']):.0f}%", f"{ours / total:.2f}",
                          f"{stats.median(cell['drop_ms']):.3f}", f"{stats.median(cell['peak_kib']) / 1024:.0f}"])
        parts.append(f"{name}: {about['summary']}\n"
                     + report.table(["memory", "fill and drop, ms", "", f"{OURS} / it", "drop, ms", "peak, MiB"], lines))
    return parts


def threads(rows):
    """User time first: on a machine that is busy otherwise, the clock says little."""
    if not rows:
        return []
    names = list(next(iter(rows.values()))["runs"])
    lines = []
    for about in rows.values():
        runs = about["runs"]
        lines.append([about["life"], str(about["threads"]), *(number(stats.median(runs[name]["user_ns"])) for name in names),
                      *(number(stats.median(runs[name]["wall_ns"])) for name in names)])
    header = ["blocks of 48 bytes", "threads", *(f"{name}\nCPU" if i == 0 else f"{name}\n" for i, name in enumerate(names)),
              *(f"{name}\nclock" if i == 0 else f"{name}\n" for i, name in enumerate(names))]
    return ["nanoseconds for a pair of allocate and deallocate: CPU time of all threads, and the clock's time for the pairs of all threads\n"
            + report.table(header, lines)]


def of_kind(data, kind):
    return {name: about for name, about in data["rows"].items() if about["kind"] == kind}


def at_once(rows):
    """How many times faster release_all() is than destroying node by node, per row."""
    return {name: stats.median(about["runs"]["nodes"]["drop_ms"]) / stats.median(about["runs"][OURS]["drop_ms"]) for name, about in rows.items()}


def render(data):
    found = of_kind(data, "map")
    parts = [f"a std::map of {data['entries']:,} entries, filled and dropped with its memory; medians", *maps(found),
             "\n".join(f"{row}: release_all() is {ratio:.0f} times faster than destroying node by node" for row, ratio in at_once(found).items()),
             *threads(of_kind(data, "threads"))]
    if data["missing"]:
        parts.append("\n".join(f"missing: {name}: {reason}" for name, reason in data["missing"].items()))
    return "\n\n".join(parts)
