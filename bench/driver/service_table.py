# SPDX-License-Identifier: MIT
"""The tables of `script/bench service`: each malloc on each row, the least marked; as text and as Markdown, and one picture."""

from . import command_tables, report

FIGURES = [  # (key, heading, which rows have it is seen from the data)
    ("floor", "MiB resident after the idle time"),
    ("floor_ratio", "the same over live memory; over the pages that hold a survivor"), ("integral_ratio", "resident over live memory, integrals over the load"),
    ("peak_ratio", "peak resident over peak live memory"), ("peak", "peak resident MiB"), ("child_dirty_mib", "MiB that the child of a fork made its own"),
    ("lines_at_first", "percent of blocks on another thread's lines"), ("lines_at_last", "the same after five passes"),
    ("faults", "page faults"), ("cpu", "CPU seconds"), ("requests", "requests served"),
]
LARGER_IS_BETTER = {"requests"}
OF_MEMORY = {"floor", "peak", "faults", "cpu"}  # of no interest in the rows that count lines


def cells(data, figure):
    """{row: {allocator: value}} of the rows that have the figure."""
    found = {row: {name: one[figure] for name, one in about["runs"].items() if figure in one} for row, about in data["rows"].items()}
    return {row: values for row, values in found.items() if values and not (figure in OF_MEMORY and row.startswith("lines"))}


def best(values, figure):
    return (max if figure in LARGER_IS_BETTER else min)(values.values())


def render(data):
    parts = []
    for figure, title in FIGURES:
        table = cells(data, figure)
        if not table:
            continue
        lines = [[row, *(f"{report.number(values[a])}{'*' if values[a] == best(values, figure) else ' '}" if a in values else "-" for a in data["allocators"])]
                 for row, values in table.items()]
        parts.append(f"{title} (* best)\n" + report.table(["row", *data["allocators"]], lines))
    parts += [f"missing: {name}: {reason}" for name, reason in data["missing"].items()]
    parts += [f"not run: {row}: {about['missing']}" for row, about in data["rows"].items() if "missing" in about]
    parts += [f"failed: {row} under {name}: {one['error']}" for row, about in data["rows"].items() for name, one in about["runs"].items() if "error" in one]
    return "\n\n".join(parts)


def label(data, name):
    version = data["allocators"][name]["version"]
    return "Freehold" if name == "freehold" else f"{command_tables.NAMES.get(name, name)} {version}"


def markdown(data, figure, digits=".0f"):
    """Each malloc on each row that has the figure, the best in bold."""
    table = cells(data, figure)
    lines = []
    for row, values in table.items():
        shown = [f"{values[a]:{digits}}" if a in values else "–" for a in data["allocators"]]
        marked = [f"**{text}**" if a in values and values[a] == best(values, figure) else text for a, text in zip(data["allocators"], shown)]
        lines.append([f"`{row}`", *marked])
    return command_tables.table(["row", *(label(data, a) for a in data["allocators"])], lines)


def forks(data):
    return markdown(data, "child_dirty_mib", ".1f")


def against_best(data, row, figure):
    """Ours, and the best of the others with its name."""
    values = cells(data, figure).get(row, {})
    others = {name: value for name, value in values.items() if name != "freehold"}
    if "freehold" not in values or not others:
        return "–"
    name = min(others, key=others.get)
    return f"{report.number(values['freehold'])} : {report.number(others[name])} {command_tables.NAMES.get(name, name)}"


def overview(data):
    """One line for each row: ours against the best of the others in each figure."""
    figures = ["floor", "integral_ratio", "peak_ratio", "faults", "cpu"]
    wanted = [row for row in data["rows"] if row in cells(data, "floor") and not row.startswith("snapshot")]
    lines = [[f"`{row}`", *(against_best(data, row, figure) for figure in figures)] for row in wanted]
    about = data["machine"]
    source = (f"Measured on {about['processor']}, {about['cpus']} CPUs, kernel {about['kernel']}, {about['libc']}; {data['date']}; {data['program_seconds']:.0f} s of load on "
              f"each real program; {command_tables.stored('service')}. Each cell: Freehold : the best of the others.")
    source += "".join(f" `{row}`: {one['measured']}." for row, one in data["rows"].items() if "measured" in one)
    return source + "\n\n" + command_tables.table(["row", "MiB after idle", "resident / live", "peak / peak live", "faults", "CPU s"], lines)


def picture(data, row="survivors_random"):
    """A bar for each malloc: what stays resident of a spike, beside the bytes that live and the pages that hold them. SVG."""
    runs = {name: one for name, one in data["rows"][row]["runs"].items() if "floor" in one}
    most = max(one["floor"] for one in runs.values())
    first = next(iter(runs.values()))
    width, left, bar = 720, 150, 26
    scale = (width - left - 70) / most
    height = bar * len(runs) + 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="10" y="20">MiB resident {data["idle_seconds"]:.0f} s after a spike of 400 MiB of which 1 block in 15 survives</text>']
    for at, (name, one) in enumerate(sorted(runs.items(), key=lambda item: item[1]["floor"])):
        y = 34 + at * bar
        colour = "#2a6f97" if name == "freehold" else "#b0b7bf"
        out += [f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{label(data, name)}</text>',
                f'<rect x="{left}" y="{y}" width="{one["floor"] * scale:.1f}" height="{bar - 6}" fill="{colour}"/>',
                f'<text x="{left + one["floor"] * scale + 6:.1f}" y="{y + 15}">{one["floor"]:.0f}</text>']
    for value, colour, what in ((first["live_mib"], "#c1121f", "live bytes"), (first["held_mib"], "#e09f3e", "pages with a survivor")):
        x = left + value * scale
        out += [f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="{height - 22}" stroke="{colour}" stroke-dasharray="4 3"/>',
                f'<text x="{x:.1f}" y="{height - 8}" fill="{colour}" text-anchor="middle">{what} {value:.0f}</text>']
    return "\n".join([*out, "</svg>", ""])
