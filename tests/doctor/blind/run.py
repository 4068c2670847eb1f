#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Asks freehold doctor about programs whose cause is known, and prints the confusion matrix.

The programs were written from docs/doctor.md alone; what counts as right stands in the head of each. script/doctor_blind runs this.
"""

import argparse
import fnmatch
import json
import signal
import sys
from pathlib import Path

import asking
import byhand
import cases
import gains
import matrix
from cases import harness

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"blind": ROOT / "docs" / "doctor-blind.md", "public": ROOT / "docs" / "doctor-public.md", "gains": ROOT / "docs" / "doctor-checked.md"}
PAGE = Path("the page of the kind")  # where --markdown names no file
CONDITIONS = {"quiet": 0, "busy": 2}  # processes beside that do nothing but compute


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"doctor_blind: {message}; --help lists the options\n")


def number(kind, least, below=None):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < (below or float("inf")):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} on" + (f", below {below}" if below else ""))
        return value
    return parse


def conditions(text):
    names = text.split(",")
    if not set(names) <= set(CONDITIONS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of {', '.join(CONDITIONS)}")
    return names


def parse_arguments(words):
    parser = OneLineParser(prog="script/doctor_blind", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="FOLDER", help="build folder whose freehold is asked [build/release]")
    parser.add_argument("--programs", type=Path, default=None, metavar="FOLDER", help="where the cases are built [BUILD/blind]")
    parser.add_argument("--public", action="store_true", help="instead, programs rebuilt from public descriptions of a cause [results in BUILD/blind/public.json]")
    parser.add_argument("--gains", action="store_true", help="instead, real programs: the gains that the doctor predicts beside measured ones")
    parser.add_argument("--only", metavar="PATTERN", help="cases by name or cause, with * and ?, several by commas")
    parser.add_argument("--budget", type=number(float, 1), default=25.0, metavar="S", help="seconds for each case [25]")
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument("--neighbours", type=number(int, 0, 65), default=0, metavar="N", help="busy processes beside [0]")
    beside.add_argument("--conditions", type=conditions, metavar="LIST", help="quiet,busy: all cases under each; busy is two neighbours. "
                        "Results go to a file for each: results-busy.json")
    parser.add_argument("--jobs", type=number(int, 1, 2), default=1, metavar="1", help="cases at the same time: only 1, as they would disturb each other")
    parser.add_argument("--results", type=Path, default=None, metavar="FILE", help="JSON of all answers [BUILD/blind/results.json, public.json or gains.json]")
    parser.add_argument("--markdown", type=Path, nargs="?", const=PAGE, metavar="FILE", help="write the section there, between its marks [docs/doctor-blind.md, "
                        "doctor-public.md, or doctor-checked.md for --gains]")
    parser.add_argument("--resume", action="store_true", help="keep what the results file has, ask about the rest")
    parser.add_argument("--again", metavar="PATTERN", help="with --resume: cases by name that are asked once more")
    parser.add_argument("--rewrite", action="store_true", help="ask nothing: write the section from the results files")
    parser.add_argument("--ahead-of-others", action="store_true", help="as the doctor's own option")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a verdict is wrong, or if there is none at all")
    parser.add_argument("--list", action="store_true", help="name the cases, ask nothing")
    parser.add_argument("--by-hand", action="store_true", help="no doctor: time each case with one and two threads and with other mallocs")
    parser.add_argument("--times", type=number(int, 1), default=3, metavar="N", help="runs of each for --by-hand [3]")
    asked = parser.parse_args(words)
    asked.programs = asked.programs or asked.build / "blind"
    asked.kind = "gains" if asked.gains else "public" if asked.public else "blind"
    asked.results = asked.results or asked.programs / ("results.json" if asked.kind == "blind" else f"{asked.kind}.json")
    if asked.rewrite or asked.markdown == PAGE:
        asked.markdown = PAGES[asked.kind] if asked.markdown in (None, PAGE) else asked.markdown
    return asked


def read_results(results):
    try:
        stored = json.loads(results.read_text())
        return stored["settings"], stored["entries"]
    except FileNotFoundError:
        raise cases.CaseError(f"{results} does not exist; ask first, without --rewrite") from None
    except (ValueError, KeyError, TypeError):
        raise cases.CaseError(f"{results} does not hold results; remove it, or name another with --results") from None


def is_asked_anew(asked, entry, heads):
    """No answer counts for a head that says something else since; nor one that failed, or that --again names."""
    case = heads.get(entry["case"])
    changed = case is not None and (entry["truth"], entry["right"]) != (case.truth, [condition.term for condition in case.right])
    return changed or entry["judgement"] == "failed" or any(fnmatch.fnmatchcase(entry["case"], pattern) for pattern in (asked.again or "").split(","))


def kept_results(asked, results, chosen, settings):
    """Answers of an earlier run; only such that were asked in the same way."""
    if not asked.resume or not results.exists():
        return []
    earlier, entries = read_results(results)
    if earlier != settings:
        raise cases.CaseError(f"{results} was made with other settings ({earlier}); use the same, or another file with --results")
    heads = {case.name: case for case in chosen}
    return [entry for entry in entries if not is_asked_anew(asked, entry, heads)]


def store(results, settings, entries):
    """After each case, so that an interrupted run loses one."""
    matrix.write_json(results, {"schema": "freehold-blind/1", "settings": settings, "counts": matrix.count(entries),
                                "confusion": matrix.confusion(entries), "entries": entries})


def runnable(chosen):
    """Those for which the machine has what they need; the others are named."""
    for case in chosen:
        tool, path = cases.needed_tool(case)
        if path is None:
            print(f"left out: {case.name} needs {tool}", file=sys.stderr)
        else:
            yield case


def ask_all(asked, results, chosen, settings):
    entries = kept_results(asked, results, chosen, settings)
    done = {entry["case"] for entry in entries}
    open_cases = [case for case in chosen if case.name not in done]
    programs = {case.name: cases.build(case, asked.programs) for case in open_cases}
    speedups = {case.name: asking.speedup_by_hand(case, programs[case.name]) for case in open_cases}
    with harness.neighbours(settings["neighbours"]):
        for place, case in enumerate(open_cases, len(chosen) - len(open_cases) + 1):
            entry = asking.ask(case, asked.build / "bin" / "freehold", programs[case.name], asked.budget, speedups[case.name], asked.ahead_of_others)
            entries.append(entry)
            store(results, settings, entries)
            print(f"[{place}/{len(chosen)}] {entry['judgement']:9}  {case.name}: {entry['verdict']} ({case.truth}), {entry['seconds']} s"
                  + ("; this machine bears it" if entry["borne"] else "")
                  + ("; the allocator blamed in vain" if entry["in_vain"] else ""), flush=True)
    return of_chosen(entries, chosen)


def of_chosen(entries, chosen):
    names = {case.name for case in chosen}
    return [entry for entry in entries if entry["case"] in names]


def stored_parts(files, chosen):
    """What earlier runs left in their files, for --rewrite; says how many cases are missing."""
    for results in files:
        settings, entries = read_results(results)
        entries = of_chosen(entries, chosen)
        if len(entries) < len(chosen):
            print(f"{results.name}: {len(entries)} of {len(chosen)} cases were asked; --resume asks about the rest", file=sys.stderr)
        yield entries, settings


def report(asked, chosen, parts):
    """`parts`: (entries, settings) of each condition."""
    for entries, settings in parts:
        print(f"\n{settings['neighbours']} busy neighbours\n{matrix.as_text(entries)}")
    if asked.markdown:
        only = [f"--only {asked.only}"] if asked.only else []
        beside = f"--conditions {','.join(asked.conditions)}" if asked.conditions else f"--neighbours {asked.neighbours}"
        public = ["--public"] if asked.public else []
        stories = {case.name: case.story for case in chosen} if asked.public else None
        section = matrix.as_markdown(asked.kind, " ".join(["script/doctor_blind", *public, f"--budget {parts[0][1]['budget_s']:g}", beside, *only]), parts, stories)
        matrix.write_section(asked.markdown, asked.kind, section)
    counts = matrix.count([entry for entries, _ in parts for entry in entries])
    # A case that did not end in time, on a machine that others keep busy, is no wrong verdict; nothing but such is no trial.
    return 1 if asked.gate and (counts["wrong"] or counts["in_vain"] or counts["failed"] == counts["cases"]) else 0


def main(words):
    asked = parse_arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the doctor and the neighbours are ended
    try:
        if asked.gains:
            return gains.compare(asked)
        chosen = cases.choose(cases.all_cases(cases.PUBLIC if asked.public else cases.PROGRAMS), asked.only)
        if asked.list:
            for case in chosen:
                print(f"{case.name:32} {case.language:7} {case.truth}")
            return 0
        files = [asked.results] if not asked.conditions else [asked.results.with_stem(f"{asked.results.stem}-{name}") for name in asked.conditions]
        if asked.rewrite:
            return report(asked, chosen, list(stored_parts(files, chosen)))
        if not asked.by_hand and not (asked.build / "bin" / "freehold").exists():
            raise cases.CaseError(f"{asked.build}/bin/freehold does not exist; build it, or name the folder with --build")
        chosen = list(runnable(chosen))
        if asked.by_hand:
            for case in chosen:
                byhand.examine(case, cases.build(case, asked.programs), asked.times)
            return 0
        for case in chosen:
            cases.build(case, asked.programs)  # all before the first is asked, so that no compiler runs beside it later
        beside = [CONDITIONS[name] for name in asked.conditions] if asked.conditions else [asked.neighbours]
        parts = [(results, {"budget_s": asked.budget, "neighbours": neighbours}) for results, neighbours in zip(files, beside)]
        return report(asked, chosen, [(ask_all(asked, results, chosen, settings), settings) for results, settings in parts])
    except (cases.CaseError, OSError) as problem:
        print(f"doctor_blind: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("doctor_blind: interrupted; --resume goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
