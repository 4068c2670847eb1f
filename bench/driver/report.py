"""The tables: ours against the best peer of each row, lost rows first, then the full matrix of medians."""

from . import stats

TIE = 1.0


def table(header, lines):
    """Plain text, first column to the left, the others to the right."""
    widths = [max(len(str(line[i])) for line in [header, *lines]) for i in range(len(header))]
    def layout(line):
        return "  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(line, widths)))
    return "\n".join([layout(header), "  ".join("-" * w for w in widths), *map(layout, lines)])


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def usable_cells(matrix):
    return {row: {name: cell.medians for name, cell in cells.items() if cell.usable} for row, cells in matrix.items()}


def comparisons(matrix, ours):
    found = (stats.compare(row, cells, ours) for row, cells in usable_cells(matrix).items())
    return sorted((c for c in found if c), key=lambda c: -c.time_ratio)


def compared_table(compared):
    lines = [[("- " if c.time_ratio > TIE else "  ") + c.row, f"{c.time_ratio:.2f}", number(c.time), number(c.best_time), c.fastest,
              f"{c.memory_ratio:.2f}", number(c.memory), number(c.best_memory), c.smallest] for c in compared]
    return table(["row (- lost)", "time", "ours", "best", "of", "peak", "ours MiB", "least", "of"], lines)


def matrix_table(matrix, rows, allocators, index):
    """index 0: time with its spread; 1: peak memory."""
    names = [a.name for a in allocators]
    lines = []
    for row in rows:
        cells = [matrix[row.name][name] for name in names]
        best = min((c.medians[index] for c in cells if c.usable), default=None)
        def show(cell):
            if not cell.usable:
                return "failed" if cell.error else "-"
            mark = "*" if cell.medians[index] == best else " "
            noise = f" ±{100 * stats.spread(cell.times):.0f}%" if index == 0 else ""
            return f"{number(cell.medians[index])}{mark}{noise}"
        lines.append([row.name, row.unit if index == 0 else "MiB", *map(show, cells)])
    return table(["row", "unit", *names], lines)


def best_of_all(matrix, allocators):
    """Each allocator against the best of the row: geometric means and worst row."""
    cells = usable_cells(matrix)
    lines = []
    for allocator in allocators:
        mine = {row: c for row, c in cells.items() if allocator.name in c}
        if not mine:
            continue
        time = {row: c[allocator.name][0] / min(v[0] for v in c.values()) for row, c in mine.items()}
        peak = {row: c[allocator.name][1] / min(v[1] for v in c.values()) for row, c in mine.items()}
        worst = max(time, key=time.get)
        lines.append([allocator.name, f"{stats.geometric_mean(list(time.values())):.2f}",
                      f"{stats.geometric_mean(list(peak.values())):.2f}", f"{time[worst]:.1f}", worst, len(mine)])
    return table(["each against the best of the row", "time", "peak", "worst", "row", "rows"], lines)


def summary_lines(matrix, ours):
    compared = comparisons(matrix, ours)
    if not compared:
        return []
    total = stats.summarise(compared)
    lost = [c for c in compared if c.time_ratio > TIE]
    each = stats.against_each(usable_cells(matrix), ours)
    lines = [compared_table(compared), "",
             f"time, ours / best peer of each row, geometric mean of {len(compared)} rows:  {total.time:.2f}",
             f"peak, ours / smallest peer of each row, geometric mean:            {total.memory:.2f}",
             f"worst row: {total.worst.row}, {total.worst.time_ratio:.2f} x {total.worst.fastest}; rows lost: {len(lost)}", "",
             table(["ours against", "time", "peak"], [[peer, f"{t:.2f}", f"{m:.2f}"] for peer, (t, m) in sorted(each.items())]), ""]
    return lines


def failures(matrix, missing):
    lines = [f"missing: {name}: {reason}" for name, reason in missing.items()]
    lines += [f"failed: {row} under {name}: {cell.error}" for row, cells in matrix.items() for name, cell in cells.items() if cell.error]
    return lines


def render(matrix, rows, allocators, missing, ours):
    parts = summary_lines(matrix, ours)
    parts += ["time (median ± half the quartile distance; * best)", matrix_table(matrix, rows, allocators, 0), "",
              "peak memory, MiB", matrix_table(matrix, rows, allocators, 1), "", best_of_all(matrix, allocators)]
    return "\n".join(parts + [""] + failures(matrix, missing))
