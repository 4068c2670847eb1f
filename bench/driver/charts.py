# SPDX-License-Identifier: MIT
"""The plots and bars of a stored run of `freehold articles`, as one SVG for each article. Faint marks are the article's own values."""

from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 480, 345, 70, 30, 250, 200
COLOURS = ["#2a6f97", "#c1121f", "#e09f3e", "#588157", "#7b2d8b"]


def text(x, y, words, anchor="start", **more):
    attributes = "".join(f' {key}="{value}"' for key, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>{escape(words)}</text>'


def round_up(value):
    """The least of 1, 2, 2.5, 4, 5 or 8 times a power of ten that is not below it."""
    power = 10 ** (ceil(log10(value)) - 1)
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= value * 0.999)


def frame(chart, most, unit, least=0):
    """Title, axis and the words beside it; and where a value lies. `least` above 0: the axis is logarithmic, and begins there."""
    def y(value):
        share = log10(max(value, least) / least) / log10(most / least) if least else min(value, most) / most
        return TOP + PLOT_HEIGHT * (1 - share)
    ticks = [10 ** power for power in range(round(log10(least)), round(log10(most)) + 1)] if least else [most * part / 4 for part in range(5)]
    out = [text(4, 16, chart["title"], **{"font-weight": "bold"})]
    for value in ticks:
        out += [f'<line x1="{LEFT}" x2="{LEFT + PLOT_WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>', text(LEFT - 5, y(value) + 4, f"{value:.4g}", "end")]
    return out + [text(14, TOP + PLOT_HEIGHT / 2, unit, "middle", transform=f"rotate(-90 14 {TOP + PLOT_HEIGHT / 2})")], y


def mark(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="{colour}" opacity="0.5"/>'


def legend(words, coloured):
    """Lines right of the plot, the first ones with the colours that they explain."""
    squares = [f'<rect x="{LEFT + PLOT_WIDTH + 10}" y="{TOP + 18 * at}" width="10" height="10" fill="{COLOURS[at]}"/>' for at in range(coloured)]
    return squares + [text(LEFT + PLOT_WIDTH + 25, TOP + 18 * at + 10, line) for at, line in enumerate(words)]


def plot(chart):
    """Lines over numbers, each in a step of its own; the range of the sets is the line at a point."""
    lines, count = chart["lines"], len(chart["x"])
    most = round_up(max(value for line in lines for value in line["greatest"] + line["article"] if value is not None))
    out, y = frame(chart, most, chart["y_name"])
    xs = [LEFT + PLOT_WIDTH * (at + 0.5) / count for at in range(count)]
    out += [text(x, TOP + PLOT_HEIGHT + 16, f"{value:g}", "middle") for x, value in zip(xs, chart["x"])]
    out.append(text(LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 34, chart["x_name"], "middle"))
    for at, line in enumerate(lines):
        colour = COLOURS[at % len(COLOURS)]
        points = [(x, *values) for x, *values in zip(xs, line["values"], line["least"], line["greatest"]) if values[0] is not None]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y(value):.1f}" for x, value, *_ in points)}"/>')
        out += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(least):.1f}" y2="{y(greatest):.1f}" stroke="{colour}"/>' for x, _, least, greatest in points]
        out += [mark(x, y(value), colour) for x, value in zip(xs, line["article"]) if value is not None]
    return out + legend([line["label"] for line in lines], len(lines))


def bars(chart):
    """A bar for each label; the article's values on a scale of their own where they have another unit. Logarithmic over more than two decades."""
    scaled = chart["unit_of_article"] != chart["unit"]
    own = [one["value"] for one in chart["bars"]]
    theirs = [one["article"] for one in chart["bars"] if one["article"] is not None]
    drawn = own if scaled else own + theirs
    most, least = round_up(max(drawn)), 0
    if max(drawn) > 100 * min(drawn):
        most, least = 10 ** ceil(log10(most)), 10 ** floor(log10(min(drawn)))
    per_article = round_up(max(theirs)) / most if scaled and theirs else 1
    out, y = frame(chart, most, chart["unit"], least)
    kinds = list(dict.fromkeys(one["kind"] for one in chart["bars"]))
    is_coloured = len(kinds) <= len(COLOURS)
    notes = ["○ the article's"] * bool(theirs) + [f"in {chart['unit_of_article']}, {per_article * most:g} at the top"] * bool(scaled and theirs)
    out += legend([*(kinds if is_coloured else []), *notes], len(kinds) if is_coloured else 0)
    step = PLOT_WIDTH / len(chart["bars"])
    for at, one in enumerate(chart["bars"]):
        x, colour = LEFT + step * at, COLOURS[kinds.index(one["kind"]) if is_coloured else 0]
        out += [f'<rect x="{x + step * 0.15:.1f}" y="{y(one["value"]):.1f}" width="{step * 0.7:.1f}" height="{TOP + PLOT_HEIGHT - y(one["value"]):.1f}" fill="{colour}"/>',
                text(x + step / 2 + 4, TOP + PLOT_HEIGHT + 10, one["label"], "end", transform=f"rotate(-50 {x + step / 2 + 4:.1f} {TOP + PLOT_HEIGHT + 10})")]
        if one["article"] is not None:
            out.append(mark(x + step / 2, y(one["article"] / per_article), "black"))
    return out


def picture(data, article):
    """All charts of one article, two in a row."""
    charts = [plot(one) for one in data["plots"] if one["article"] == article] + [bars(one) for one in data["bars"] if one["article"] == article]
    rows = ceil(len(charts) / 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {rows * HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{2 * WIDTH}" height="{rows * HEIGHT}" fill="white"/>']
    for at, chart in enumerate(charts):
        out += [f'<g transform="translate({at % 2 * WIDTH} {at // 2 * HEIGHT})">', *chart, "</g>"]
    return "\n".join([*out, "</svg>", ""])
