# SPDX-License-Identifier: MIT
"""The claims and figures of a stored run of `freehold articles`, as Markdown."""

from .command_tables import table


def escaped(text):
    return "–" if text is None else text.replace("|", "\\|")


def ratio(claim):
    if claim["ratio"] is None:
        return "–"
    bound = f"{'≥' if claim['at_least'] else '≤'} {claim['threshold']:.4g}"
    return f"{claim['ratio']:.2f} ({claim['least_ratio']:.2f}–{claim['greatest_ratio']:.2f}), {bound}"


def of_article(data, one_cpu, article):
    """One article's claims, with what a run on one CPU says of them, then the tables behind them."""
    alone = {claim["id"]: claim["verdict"] + ("" if claim["ratio"] is None else f", {claim['ratio']:.2f}") for claim in one_cpu["claims"]}
    claims = [[claim["claim"], f"**{claim['verdict']}**", claim["figure"], ratio(claim), alone[claim["id"]], claim["limits"]]
              for claim in data["claims"] if claim["article"] == article]
    parts = [table(["claim", "verdict", "figure", "ratio (in the sets), reproduced if", "on one CPU", "limits"], [map(escaped, cells) for cells in claims])]
    for one in data["tables"]:
        if one["article"] == article:
            columns = one["columns"]
            parts.append(f"### {one['title']}\n\n" + table([*map(escaped, columns)], [map(escaped, cells + [""] * (len(columns) - len(cells))) for cells in one["rows"]]))
    return "\n\n".join(parts)


def head(data):
    machine = data["machine"]
    counts = {verdict: sum(claim["verdict"] == verdict for claim in data["claims"])
              for verdict in ("reproduced", "refuted", "undecided", "not testable")}
    lines = [f"{machine['cpu_model']}, {machine['cpus']} CPUs, {machine['system']}, {machine['libc']}; {data['date'][:10]}, "
             f"{data['seconds']:.0f} s, medians of {data['settings']['repeat'] or 'as many as each article has'} sets. Of {len(data['claims'])} claims "
             + ", ".join(f"{n} are {verdict}" for verdict, n in counts.items()) + "."]
    return "\n".join(lines + [f"- {note}" for note in data["notes"]])
