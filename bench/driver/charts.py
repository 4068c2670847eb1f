# SPDX-License-Identifier: MIT
"""The plots and bars of a stored run of `freehold articles`, as one SVG for each article. Faint marks are the article's own values."""

from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 480, 345, 70, 30, 250, 200
COLOURS = ["#2a6f97", "#c1121f", "#e09f3e", "#588157", "#7b2d8b"]


def named(attributes):
    return "".join(f' {key}="{value}"' for key, value in attributes.items())


def text(x, y, words, anchor="start", **more):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named(more)}>{escape(words)}</text>'


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
    grid = path((f"M{LEFT} {y(value):.1f}h{PLOT_WIDTH}" for value in ticks), stroke="#ddd")
    out = [text(4, 16, chart["title"], **{"font-weight": "bold"}), grid, *(text(LEFT - 5, y(value) + 4, f"{value:.4g}", "end") for value in ticks)]
    return out + [text(14, TOP + PLOT_HEIGHT / 2, unit, "middle", transform=f"rotate(-90 14 {TOP + PLOT_HEIGHT / 2})")], y


def path(parts, **attributes):
    """All parts as one element; none if there are none."""
    drawn = "".join(parts)
    return f'<path d="{drawn}"{named(attributes)}/>' if drawn else ""


def rectangle(x, y, width, height):
    return f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"


def marks(points, colour):
    """The article's values."""
    return path((f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0" for x, y in points), fill="none", stroke=colour, opacity=0.5)


def legend(words, coloured):
    """Lines right of the plot, the first ones with the colours that they explain."""
    squares = [path([rectangle(LEFT + PLOT_WIDTH + 10, TOP + 18 * at, 10, 10)], fill=COLOURS[at]) for at in range(coloured)]
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
        out.append(path((f"M{x:.1f} {y(least):.1f}V{y(greatest):.1f}" for x, _, least, greatest in points), stroke=colour))
        out.append(marks(((x, y(value)) for x, value in zip(xs, line["article"]) if value is not None), colour))
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
    placed = [(LEFT + step * at, one) for at, one in enumerate(chart["bars"])]
    for colour in COLOURS:
        out.append(path((rectangle(x + step * 0.15, y(one["value"]), step * 0.7, TOP + PLOT_HEIGHT - y(one["value"]))
                         for x, one in placed if colour == COLOURS[kinds.index(one["kind"]) if is_coloured else 0]), fill=colour))
    out += [text(x + step / 2 + 4, TOP + PLOT_HEIGHT + 10, one["label"], "end", transform=f"rotate(-50 {x + step / 2 + 4:.1f} {TOP + PLOT_HEIGHT + 10})") for x, one in placed]
    out.append(marks(((x + step / 2, y(one["article"] / per_article)) for x, one in placed if one["article"] is not None), "black"))
    return out


def picture(data, article):
    """All charts of one article, two in a row."""
    charts = [plot(one) for one in data["plots"] if one["article"] == article] + [bars(one) for one in data["bars"] if one["article"] == article]
    rows = ceil(len(charts) / 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {rows * HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{2 * WIDTH}" height="{rows * HEIGHT}" fill="white"/>']
    for at, chart in enumerate(charts):
        out += [f'<g transform="translate({at % 2 * WIDTH} {at // 2 * HEIGHT})">', *filter(None, chart), "</g>"]
    return "\n".join([*out, "</svg>", ""])
