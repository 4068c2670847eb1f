# SPDX-License-Identifier: MIT
"""The results as a confusion matrix: for a terminal, as JSON and as the Markdown of docs/doctor-checked.md."""

from collections import Counter

BORNE = "none: this machine bears it"
JUDGEMENTS = ("right", "undecided", "wrong", "failed")
BEGIN, END = "<!-- begin blind: written by script/doctor_blind -->", "<!-- end blind -->"


def count(entries):
    """What the results come to."""
    judged = Counter(entry["judgement"] for entry in entries)
    return {"cases": len(entries), **{name: judged[name] for name in JUDGEMENTS}, "in_vain": sum(entry["in_vain"] for entry in entries)}


def column(entry):
    """The verdict; apart, where the program loses nothing because the machine bears what is wrong with it."""
    return BORNE if entry.get("borne") and entry["verdict"] == "none" else entry["verdict"]


def confusion(entries):
    """{truth: {verdict: cases}}, the most frequent truth first."""
    truths = [truth for truth, _ in Counter(entry["truth"] for entry in entries).most_common()]
    return {truth: dict(Counter(column(entry) for entry in entries if entry["truth"] == truth)) for truth in truths}


def share(part, whole):
    return f"{part} ({part / whole:.0%})" if whole else "0"


def sentence(entries):
    counts = count(entries)
    return ", ".join(f"{share(counts[name], counts['cases'])} {name}" for name in JUDGEMENTS if name != "failed" or counts[name]) + \
        f" of {counts['cases']} cases; the allocator blamed in vain: {counts['in_vain']}"


def rows_of(entries):
    table = confusion(entries)
    verdicts = [verdict for verdict, _ in Counter(map(column, entries)).most_common()]
    return ["cause"] + verdicts, [[truth] + [str(table[truth].get(verdict, "")) for verdict in verdicts] for truth in table]


def as_text(entries):
    head, rows = rows_of(entries)
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in [head, *rows]]
    return "\n".join([*lines, "", sentence(entries)])


def as_markdown(entries, settings):
    head, rows = rows_of(entries)
    table = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    others = [entry for entry in entries if entry["judgement"] in ("wrong", "failed")]
    neighbours = settings["neighbours"]
    beside = "nothing else running by the harness" if not neighbours else f"{neighbours} busy process{'es' * (neighbours > 1)} beside"
    lines = [BEGIN, f"Written by `script/doctor_blind --budget {settings['budget_s']:g} --neighbours {neighbours}`, {beside}; "
             f"a row for each true cause, a column for each verdict (`mixed+` blames the allocator among others, `mixed-` does not). `{BORNE}`: measured by hand two threads are at least 1.85 times as fast as one.",
             "", *table, "", f"{sentence(entries)}."]
    if others:
        lines += ["", "| wrong | cause | verdict | headline |", "|---|---|---|---|"]
        lines += [f"| {e['case']} | {e['truth']} | {e['verdict']} | {e['headline'].replace('|', '/')} |" for e in others]
    return "\n".join([*lines, END]) + "\n"


def put_into(page, section):
    """The page with the section between its two marks replaced, or added at the end."""
    if BEGIN not in page or END not in page:
        return page.rstrip("\n") + "\n\n## Blind cases\n\n" + section
    before, rest = page.split(BEGIN, 1)
    return before + section.rstrip("\n") + rest.split(END, 1)[1]
