# SPDX-License-Identifier: MIT
"""The tables of docs/mimalloc-bench.md. CPU time comes first: the run may have had a busy machine, whose clock says little."""

from . import again, peers, report, stats

# They work for so many seconds, and bench.sh tells the time that one amount of work would have taken.
BY_RATE = ("larsonN", "larsonN-sized", "xmalloc-testN", "glibc-thread")
MUCH = 1.25


def lost(cells, index, what):
    """A line with the rows where Freehold has more than MUCH times the least."""
    ratios = {}
    for row, mine in cells.items():
        least = min(mine, key=lambda name: mine[name][index])
        ratios[row] = (mine[peers.OURS][index] / max(mine[least][index], 1), least)
    found = sorted((one for one in ratios.items() if one[1][0] > MUCH), key=lambda one: -one[1][0])
    return f"{what}: " + (", ".join(f"{row} {ratio:.2f} ({least})" for row, (ratio, least) in found) or "none")


def against_each(by_work, everything, label):
    """Freehold divided by each peer, geometric means: CPU time of the rows that do one amount of work, peak memory of all."""
    work, memory = (stats.against_each(cells, peers.OURS) for cells in (by_work, everything))
    return report.table(["ours against", "cpu", "peak"], [[label[peer], f"{work[peer][2]:.2f}", f"{memory[peer][1]:.2f}"] for peer in sorted(work)])


def render(path):
    machines, (matrix, rows, allocators, missing) = again.read([path])
    cells = report.usable_cells(matrix)
    by_work = {row: mine for row, mine in cells.items() if row not in BY_RATE}

    def matrix_table(index, wanted):
        return report.matrix_table(matrix, [row for row in rows if wanted(row.name)], allocators, index)

    return "\n".join(["```", *machines, "", report.versions(allocators), "", against_each(by_work, cells, report.labels(allocators)), "",
                      f"rows where Freehold has more than {MUCH} times the least",
                      lost(by_work, report.CPU, "user + system time"), lost(cells, report.PEAK, "peak memory"), lost(cells, report.FAULTS, "page faults"), "",
                      "user + system time, ms (* least)", matrix_table(report.CPU, by_work.__contains__), "",
                      "time for an amount of work, as bench.sh tells it, ms", matrix_table(report.TIME, BY_RATE.__contains__), "",
                      "peak memory, MiB", matrix_table(report.PEAK, cells.__contains__), "",
                      "page faults", matrix_table(report.FAULTS, cells.__contains__), *report.failures(matrix, missing), "```"])
