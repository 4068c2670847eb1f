# SPDX-License-Identifier: MIT
"""The tables: ours against the best peer of each row, lost rows first, then the full matrix of medians and of least times."""

import statistics

from . import stats

TIE = 1.0
ENOUGH_RUNS = 20  # from here on a row's quantiles are shown: a tenth of the runs is two
TIME, PEAK, CPU, FAULTS = range(4)  # the places in Cell.medians


def table(header, lines):
    """Plain text, first column to the left, the others to the right. A heading may have several lines."""
    headings = [str(h).split("\n") for h in header]
    tall = max(map(len, headings))
    heads = [[h[i] if i < len(h) else "" for h in headings] for i in range(tall)]
    widths = [max(len(str(line[i])) for line in [*heads, *lines]) for i in range(len(header))]
    def layout(line):
        return "  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
    return "\n".join([*map(layout, heads), "  ".join("-" * w for w in widths), *map(layout, lines)])


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def usable_cells(matrix, figures="medians"):
    return {row: {name: getattr(cell, figures) for name, cell in cells.items() if cell.usable} for row, cells in matrix.items()}


def comparisons(matrix, ours, figures="medians"):
    found = (stats.compare(row, cells, ours) for row, cells in usable_cells(matrix, figures).items())
    return sorted((c for c in found if c), key=lambda c: -c.time_ratio)


def labels(allocators):
    return {a.name: a.label for a in allocators}


def heading(allocator):
    """Name and version below each other: columns stay narrow."""
    return allocator.label.replace(" ", "\n", 1)


def compared_table(compared, label):
    lines = [[("- " if c.time_ratio > TIE else "  ") + c.row, f"{c.time_ratio:.2f}", number(c.time), number(c.best_time), label[c.fastest],
              f"{c.memory_ratio:.2f}", number(c.memory), number(c.best_memory), label[c.smallest],
              f"{c.cpu_ratio:.2f}", number(c.cpu), number(c.best_cpu), label[c.thriftiest]] for c in compared]
    return table(["row (- lost)", "time", "ours", "best", "of", "peak", "ours MiB", "least", "of", "cpu", "ours ms", "least", "of"], lines)


def matrix_table(matrix, rows, allocators, index):
    """index: TIME, with its spread, and CPU, both with the least of the runs; PEAK; FAULTS."""
    lines = []
    for row in rows:
        cells = [matrix[row.name][a.name] for a in allocators]
        best = min((c.medians[index] for c in cells if c.usable), default=None)
        def show(cell):
            if not cell.usable:
                return "failed" if cell.error else "-"
            mark = "*" if cell.medians[index] == best else " "
            noise = f" ±{100 * stats.spread(cell.times):.0f}%" if index == TIME and len(cell.times) > 1 else ""
            least = f" {number(cell.minima[index])}" if index in (TIME, CPU) and len(cell.times) > 1 else ""
            return f"{number(cell.medians[index])}{mark}{noise}{least}"
        lines.append([row.name, {TIME: row.unit, PEAK: "MiB", CPU: "ms", FAULTS: ""}[index], *map(show, cells)])
    return table(["row", "unit", *map(heading, allocators)], lines)


def quantiles_table(matrix, rows, allocators):
    """Rows that run at several speeds: a median lies at one of them, or between two. None where no row has enough runs."""
    lines = []
    for row in rows:
        for allocator in allocators:
            cell = matrix[row.name][allocator.name]
            if cell.usable and len(cell.times) >= ENOUGH_RUNS:
                twentieths = statistics.quantiles(cell.times, n=20, method="inclusive")
                lines.append([row.name, row.unit, allocator.label, len(cell.times),
                              *map(number, (min(cell.times), *(twentieths[i] for i in (1, 4, 9, 14, 17)), max(cell.times)))])
    return table(["row", "unit", "malloc", "runs", "least", "10%", "25%", "50%", "75%", "90%", "most"], lines) if lines else None


def best_of_all(matrix, allocators):
    """Each allocator against the best of the row: geometric means and worst row."""
    cells = usable_cells(matrix)
    lines = []
    for allocator in allocators:
        mine = {row: c for row, c in cells.items() if allocator.name in c}
        if not mine:
            continue
        def against_best(index):
            floor = stats.CPU_RESOLUTION if index == CPU else 0
            return {row: max(c[allocator.name][index], floor) / max(min(v[index] for v in c.values()), floor) for row, c in mine.items()}
        time, peak, cpu = map(against_best, (TIME, PEAK, CPU))
        worst = max(time, key=time.get)
        mean = [f"{stats.geometric_mean(list(ratios.values())):.2f}" for ratios in (time, peak, cpu)]
        lines.append([allocator.label, *mean, f"{time[worst]:.1f}", worst, len(mine)])
    return table(["each against the best of the row", "time", "peak", "cpu", "worst", "row", "rows"], lines)


def summary_lines(matrix, allocators, ours):
    compared = comparisons(matrix, ours)
    if not compared:
        return []
    total, label = stats.summarise(compared), labels(allocators)
    least = stats.summarise(comparisons(matrix, ours, "minima"))
    lost = [c for c in compared if c.time_ratio > TIE]
    each = stats.against_each(usable_cells(matrix), ours)
    lines = [compared_table(compared, label), "",
             f"time, ours / best peer of each row, geometric mean of {len(compared)} rows:  {total.time:.2f}",
             f"peak, ours / smallest peer of each row, geometric mean:            {total.memory:.2f}",
             f"user + system time, ours / least of each row, geometric mean:     {total.cpu:.2f}",
             f"the same of the runs' minima instead of their medians:             {least.time:.2f}, {least.memory:.2f}, {least.cpu:.2f}",
             f"worst row: {total.worst.row}, {total.worst.time_ratio:.2f} x {label[total.worst.fastest]}; rows lost: {len(lost)}", "",
             table(["ours against", "time", "peak", "cpu"],
                   [[label[peer], *(f"{r:.2f}" for r in ratios)] for peer, ratios in sorted(each.items())]), ""]
    return lines


def floors(data):
    """Of `script/bench floors`, from its stored form."""
    return table(["floor", "unit", "least", "median", "most"],
                 [[name, about["unit"], *(number(about[key]) for key in ("least", "median", "most"))] for name, about in data["floors"].items()])


def versions(allocators):
    return table(["malloc", "version", "from"], [[a.name, a.version, a.source.ljust(50)] for a in allocators])


def failures(matrix, missing):
    lines = [f"missing: {name}: {reason}" for name, reason in missing.items()]
    lines += [f"failed: {row} under {name}: {cell.error}" for row, cells in matrix.items() for name, cell in cells.items() if cell.error]
    return lines


def render(matrix, rows, allocators, missing, ours, figures=True):
    """`figures`: also each malloc's on each row."""
    parts = [versions(allocators), "", *summary_lines(matrix, allocators, ours)]
    if figures:
        if quantiles := quantiles_table(matrix, rows, allocators):
            parts += ["time, quantiles of the runs", quantiles, ""]
        parts += ["time (median ± half the quartile distance, least; * best)", matrix_table(matrix, rows, allocators, TIME), "",
                  "peak memory, MiB", matrix_table(matrix, rows, allocators, PEAK), "",
                  "user + system time of the whole process, all threads, ms (median, least)", matrix_table(matrix, rows, allocators, CPU), "",
                  "page faults", matrix_table(matrix, rows, allocators, FAULTS), ""]
    parts.append(best_of_all(matrix, allocators))
    return "\n".join(parts + [""] + failures(matrix, missing))
