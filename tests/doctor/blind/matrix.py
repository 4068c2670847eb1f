# SPDX-License-Identifier: MIT
"""The results as a confusion matrix: for a terminal, as JSON and as the Markdown of docs/doctor-blind.md."""

import json
from collections import Counter

BORNE = "none: this machine bears it"
JUDGEMENTS = ("right", "undecided", "wrong", "failed")


def marks(kind):
    """Of the section about the cases of this kind, "blind" or "public"."""
    return f"<!-- begin {kind}: written by script/doctor_blind -->", f"<!-- end {kind} -->"


def count(entries):
    """What the results come to. Strictly, only the one word that the head names is right."""
    judged = Counter(entry["judgement"] for entry in entries)
    return {"cases": len(entries), **{name: judged[name] for name in JUDGEMENTS}, "in_vain": sum(entry["in_vain"] for entry in entries),
            "as_named": sum(entry["verdict"].rstrip("+-") == entry["truth"] for entry in entries)}


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
        f" of {counts['cases']} cases; the allocator blamed in vain: {counts['in_vain']}; " \
        f"as the one word named: {counts['as_named']} of {counts['cases']}" + without_changed(entries)


def without_changed(entries):
    """A head that was changed after an answer, or its program, says less of the doctor: the count without these."""
    rest = [entry for entry in entries if not entry.get("changed")]
    counts = count(rest)
    return "" if len(rest) == len(entries) else f"; without the {len(entries) - len(rest)} that were changed after an answer: " \
        f"{counts['right']} right of {counts['cases']}, as the one word named {counts['as_named']}"


def rows_of(entries):
    table = confusion(entries)
    verdicts = [verdict for verdict, _ in Counter(map(column, entries)).most_common()]
    return ["cause"] + verdicts, [[truth] + [str(table[truth].get(verdict, "")) for verdict in verdicts] for truth in table]


def as_text(entries):
    head, rows = rows_of(entries)
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in [head, *rows]]
    return "\n".join([*lines, "", sentence(entries)])


def part_of(entries, settings):
    """The lines about one condition."""
    head, rows = rows_of(entries)
    table = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    others = [entry for entry in entries if entry["judgement"] in ("wrong", "failed")]
    neighbours = settings["neighbours"]
    beside = "nothing else running by the harness" if not neighbours else f"{neighbours} busy process{'es' * (neighbours > 1)} beside"
    lines = ["", f"Each with {settings['budget_s']:g} s, {beside}:", "", *table, "", f"{sentence(entries)}."]
    if others:
        lines += ["", "| wrong | cause | verdict | headline |", "|---|---|---|---|"]
        lines += [f"| {e['case']} | {e['truth']} | {e['verdict']} | {e['headline'].replace('|', '/')} |" for e in others]
    return lines


def rows_of_cases(parts, stories):
    """A row for each case that was rebuilt from a thread: what people found there, and the answer under each condition, with
    the load. `parts`: (entries, settings) for each condition. `stories`: {case: (found, thread, what was changed)}."""

    def answer(entry):
        text = entry["verdict"] if entry["judgement"] in ("right", "undecided") else f"**{entry['verdict']}**"
        return f"{text} | {entry['load']:.0f}"

    answers = {}
    for entries, _ in parts:
        for entry in entries:
            answers.setdefault((entry["case"], entry["truth"]), []).append(answer(entry))
    lines = ["| case | rebuilt from | what people found, and how | as one word |" + " the doctor | load |" * len(parts), "|---" * (4 + 2 * len(parts)) + "|"]
    for (case, truth), told in sorted(answers.items()):
        found, thread, changed = stories[case]
        lines.append(f"| `{case}` | [{thread}](https://github.com/{thread}) | {found} | {truth}{f' ({changed})' if changed else ''} | {' | '.join(told)} |")
    return ["", *lines]


def as_markdown(kind, command, parts, stories=None):
    """The section: the command that wrote it, and a matrix for each (entries, settings)."""
    begin, end = marks(kind)
    lines = [begin, f"Written by `{command}`; a row for each true cause, a column for each verdict (`mixed+` blames the allocator among others, "
             f"`mixed-` does not). `{BORNE}`: measured by hand two threads are at least 1.85 times as fast as one. A program's head names one word as "
             "its cause; some accept others, too, as right."]
    told = rows_of_cases(parts, stories) if stories else []
    return "\n".join([*lines, *(line for part in parts for line in part_of(*part)), *told, end]) + "\n"


def put_into(page, kind, section):
    """The page with the section between its two marks replaced, or added at the end."""
    begin, end = marks(kind)
    if begin not in page or end not in page:
        return page.rstrip("\n") + f"\n\n## {kind.capitalize()} cases\n\n" + section
    before, rest = page.split(begin, 1)
    return before + section.rstrip("\n") + rest.split(end, 1)[1]


def write_section(file, kind, section):
    """Into the page, between its marks; a new page is the section alone."""
    file.write_text(put_into(file.read_text(), kind, section) if file.exists() else section)


def write_json(file, document):
    """Put in place at once, so that whoever is interrupted leaves the former file or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(document, indent=1) + "\n")
    beside.replace(file)
