# SPDX-License-Identifier: MIT
"""The results as a table of causes: for a terminal, as JSON and as the Markdown of docs/doctor-checked.md."""

import json
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "doctor-checked.md"
BORNE = "none (borne)"
JUDGEMENTS = ("right", "undecided", "wrong", "failed")


def count(entries):
    """What the results come to. Strictly, only the one word that the list names is right."""
    judged = Counter(entry["judgement"] for entry in entries)
    return {"cases": len(entries), **{name: judged[name] for name in JUDGEMENTS}, "in_vain": sum(entry["in_vain"] for entry in entries),
            "as_named": sum(entry["verdict"].rstrip("+-") == entry["truth"] for entry in entries)}


def sentence(entries):
    counts = count(entries)
    shares = ", ".join(f"{counts[name]} ({counts[name] / max(1, len(entries)):.0%}) {name}" for name in JUDGEMENTS if name != "failed" or counts[name])
    text = f"{shares} of {counts['cases']} cases; the allocator blamed in vain: {counts['in_vain']}; as the one word named: {counts['as_named']}"
    rest = [entry for entry in entries if not entry["changed"]]
    return text if len(rest) == len(entries) else \
        f"{text}; without the {len(entries) - len(rest)} that were changed after an answer: {count(rest)['right']} right of {len(rest)}"


def verdict_of(entry):
    """Apart, where the program loses nothing because the machine bears what is wrong with it."""
    return BORNE if entry["borne"] and entry["verdict"] == "none" else entry["verdict"]


def rows_of(parts):
    """A row for each cause: its cases, and the verdicts in each part. `parts`: (entries, settings) of each condition."""
    truths = [truth for truth, _ in Counter(entry["truth"] for entry in parts[0][0]).most_common()]
    for truth in truths:
        found = [Counter(verdict_of(entry) for entry in entries if entry["truth"] == truth) for entries, _ in parts]
        yield [truth, str(max(one.total() for one in found)), *(", ".join(f"{verdict} {times}" for verdict, times in one.most_common()) for one in found)]


def name_of(settings):
    neighbours = settings["neighbours"]
    return "quiet" if not neighbours else f"beside {neighbours} busy process{'es' * (neighbours > 1)}"


def kinds_of(entries):
    """The entries of the project's own cases and of the public ones, by name of the kind."""
    for kind in ("own", "public"):
        if some := [entry for entry in entries if (entry["origin"] == "own") == (kind == "own")]:
            yield kind, some


def sentences(parts):
    return [f"{kind} cases, {name_of(settings)}: {sentence(some)}." for entries, settings in parts for kind, some in kinds_of(entries)]


def as_text(parts):
    rows = [["cause", "cases", *(name_of(settings) for _, settings in parts)], *rows_of(parts)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join([*("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows), "", *sentences(parts)])


def public_rows(parts):
    """A row for each case that was rebuilt from a thread, with the answer under each condition; one that is wrong is bold."""
    told = {}
    for entries, _ in parts:
        for entry in entries:
            if entry["origin"] != "own":
                text = entry["verdict"] if entry["judgement"] in ("right", "undecided") else f"**{entry['verdict']}**"
                told.setdefault((entry["case"], entry["origin"], entry["truth"], entry["changed"]), []).append(text)
    for (case, origin, truth, changed), answers in sorted(told.items()):
        yield f"| [{case}](https://github.com/{origin}) | {truth}{f' ({changed})' if changed else ''} | {' | '.join(answers)} |"


def as_markdown(command, day, parts):
    names = [name_of(settings) for _, settings in parts]
    rows = list(rows_of(parts))
    as_named = [row[:2] for row in rows if set(row[2:]) == {" ".join(row[:2])}]
    lines = [f"Written by `{command}` on {day}, with {parts[0][1]['budget_s']:g} s for each case. A row for each true cause: the verdicts and how often they were given; `mixed+` "
             f"blames the allocator among others, `mixed-` does not. `{BORNE}`: by hand two threads were at least 1.85 times as fast as one.", "",
             f"| cause | cases | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|", *(f"| {' | '.join(row)} |" for row in rows if row[:2] not in as_named), "",
             *([f"As named in all cases: {', '.join(' '.join(row) for row in as_named)}.", ""] if as_named else []),
             *(f"- {text}" for text in sentences(parts))]
    if wrong := [f"- {entry['case']} ({entry['truth']}), {name_of(settings)}: {entry['verdict']}: {entry['headline']}" for entries, settings in parts
                 for entry in entries if entry["judgement"] in ("wrong", "failed")]:
        lines += ["", "Wrong or without an answer:", "", *wrong]
    if rows := list(public_rows(parts)):
        lines += ["", f"| public case | cause | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|", *rows]
    return "\n".join(lines) + "\n"


def put_into(page, kind, section):
    """The page with what stands between the two marks of this kind replaced; a page without them becomes the section alone."""
    begin, end = f"<!-- begin {kind}: written by script/doctor_corpus -->\n", f"<!-- end {kind} -->"
    before, found, rest = page.partition(begin)
    return before + begin + section + end + rest.partition(end)[2] if found else begin + section + end + "\n"


def write_section(file, kind, section):
    file.write_text(put_into(file.read_text() if file.exists() else "", kind, section))


def write_json(file, document):
    """Put in place at once, so that an interrupted run leaves the former file or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(document, indent=1) + "\n")
    beside.replace(file)
