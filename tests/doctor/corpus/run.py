#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Asks freehold doctor about the programs of cases.txt, whose cause is known, and prints how often it is right.

Exit code: 0; 1 with --gate if a verdict is wrong, the allocator is blamed in vain, too few are right, or none was answered; 2 bad usage;
77 nothing to be seen on this machine (one CPU, or others used the CPUs in all cases). script/doctor_corpus runs this.
"""

import argparse
import fnmatch
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aged
import ask
import cases
import gains
import harness
import results

CONDITIONS = {"quiet": 0, "busy": 2}  # processes beside that do nothing but compute
SKIPPED = 77


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"doctor_corpus: {message}; --help lists the options\n")


def number(kind, least, most=float("inf")):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return value
    return parse


def conditions(text):
    names = text.split(",")
    if not set(names) <= set(CONDITIONS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of {', '.join(CONDITIONS)}")
    return names


def parse_arguments(words):
    parser = OneLineParser(prog="script/doctor_corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=cases.ROOT / "build" / "release", metavar="FOLDER", help="build folder whose freehold is asked [build/release]")
    parser.add_argument("--programs", type=Path, metavar="FOLDER", help="where the programs are built [BUILD/corpus]")
    parser.add_argument("--only", metavar="PATTERN", help="cases by name, cause or kind (own, public, time, memory, quick), with * and ?, several by commas")
    parser.add_argument("--budget", type=number(float, 1), default=25.0, metavar="S", help="seconds for each case [25]")
    parser.add_argument("--scale", type=number(float, 0), default=1, metavar="X", help="of the work of each case, which its last argument says [1]")
    parser.add_argument("--conditions", type=conditions, default=["quiet"], metavar="LIST", help="quiet,busy: all cases under each; busy is two processes beside [quiet]")
    parser.add_argument("--tries", type=number(int, 1), default=1, metavar="N", help="how often an undecided case is asked about [1]")
    parser.add_argument("--jobs", type=number(int, 1, 8), default=4, metavar="N", help="cases of memory at the same time, which mostly wait [4]")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON of all answers, a file for each condition [BUILD/corpus/results.json, gains.json or aged.json]")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="also keep the whole reports")
    parser.add_argument("--markdown", type=Path, nargs="?", const=results.PAGE, metavar="FILE", help="write the section there, between its marks [docs/doctor-checked.md]")
    parser.add_argument("--resume", action="store_true", help="keep what the results file has, ask about the rest")
    parser.add_argument("--again", metavar="PATTERN", help="with --resume: cases by name that are asked once more")
    parser.add_argument("--rewrite", action="store_true", help="ask nothing: write the section from the results files")
    parser.add_argument("--ahead-of-others", action="store_true", help="as the doctor's own option")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a verdict is wrong, or if there is none at all")
    parser.add_argument("--right-from", type=number(float, 0, 1), default=0, metavar="SHARE", help="with --gate: of the cases that must be right [0]")
    parser.add_argument("--list", action="store_true", help="name the cases, ask nothing")
    parser.add_argument("--by-hand", type=number(int, 1), metavar="N", help="no doctor: run each case N times with one and two threads and with other mallocs")
    parser.add_argument("--gains", action="store_true", help="instead, real programs: the gains that the doctor predicts beside measured ones")
    parser.add_argument("--aged", action="store_true", help="instead, programs that age their heap: what the doctor predicts of that beside what is measured")
    asked = parser.parse_args(words)
    asked.programs = asked.programs or asked.build / "corpus"
    asked.results = asked.results or asked.programs / ("gains.json" if asked.gains else "aged.json" if asked.aged else "results.json")
    asked.markdown = asked.markdown or (results.PAGE if asked.rewrite else None)
    return asked


def read_results(file, settings=None):
    """The stored entries, which were asked with these settings."""
    try:
        stored = json.loads(file.read_text())
        earlier, entries = stored["settings"], stored["entries"]
    except FileNotFoundError:
        raise cases.CaseError(f"{file} does not exist; ask first, without --rewrite") from None
    except (ValueError, KeyError, TypeError):
        raise cases.CaseError(f"{file} does not hold results; remove it, or name another with --results") from None
    if settings and earlier != settings:
        raise cases.CaseError(f"{file} was made with other settings ({earlier}); use the same, or another file with --results")
    return entries


def is_asked_anew(asked, entry, chosen):
    """No answer counts for a line that says something else since; nor one that failed, or that --again names."""
    case = chosen.get(entry["case"])
    changed = case is not None and (entry["truth"], entry["right"]) != (case.truth, [one.term for one in case.right])
    return changed or entry["judgement"] == "failed" or any(fnmatch.fnmatchcase(entry["case"], one) for one in (asked.again or "").split(","))


def runnable(chosen):
    """Those for which the machine has what they need; the others are named."""
    for case in chosen:
        tool, path = cases.needed_tool(case)
        if path is None:
            print(f"left out: {case.name} needs {tool}", file=sys.stderr)
        else:
            yield case


def ask_all(asked, file, chosen, settings):
    by_name = {case.name: case for case in chosen}
    earlier = read_results(file, settings) if asked.resume and file.exists() else []
    entries = [entry for entry in earlier if not is_asked_anew(asked, entry, by_name)]
    done = {entry["case"] for entry in entries}
    rest = [case for case in chosen if case.name not in done]
    programs = {case.name: cases.build(case, asked.programs) for case in rest}
    by_hand = {case.name: ask.measured_by_hand(case, programs[case.name]) for case in rest}
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)

    def ask_one(case):
        return ask.ask(case, asked.build / "bin" / "freehold", programs[case.name], asked.budget, by_hand[case.name], asked.ahead_of_others, asked.keep, asked.tries)

    def store(entry):
        """After each case, so that an interrupted run loses one."""
        entries.append(entry)
        results.write_json(file, {"schema": "freehold-corpus/1", "settings": settings, "counts": results.count(entries), "entries": entries})
        print(f"[{len(chosen) - len(rest) + sum(one['case'] not in done for one in entries)}/{len(chosen)}] {entry['judgement']:9}  {entry['case']}: {entry['verdict']} "
              f"({entry['truth']}), {entry['seconds']} s" + (f", {entry['tries']} tries" if entry["tries"] > 1 else "")
              + ("; this machine bears it" if entry["borne"] else "") + ("; the allocator blamed in vain" if entry["in_vain"] else ""), flush=True)

    with harness.neighbours(settings["neighbours"]), ThreadPoolExecutor(asked.jobs) as pool:
        for entry in map(ask_one, (case for case in rest if not case.is_("memory"))):
            store(entry)
        for entry in pool.map(ask_one, (case for case in rest if case.is_("memory"))):
            store(entry)
    return [entry for entry in entries if entry["case"] in by_name]


def stored_entries(file, chosen, settings):
    """What an earlier run left in its file, for --rewrite; says how many cases are missing."""
    names = {case.name for case in chosen}
    entries = [entry for entry in read_results(file, settings) if entry["case"] in names]
    if len(entries) < len(chosen):
        print(f"{file.name}: {len(entries)} of {len(chosen)} cases were asked; --resume asks about the rest", file=sys.stderr)
    return entries


def exit_code(asked, entries):
    counts = results.count(entries)
    counted = [entry for entry in entries if entry["judgement"] != "undecided" or not entry["busy"]]
    if not asked.gate:
        return 0
    # A case that did not end in time, on a machine that others keep busy, is no wrong verdict; nothing but such is no trial.
    if counts["wrong"] or counts["in_vain"] or counts["failed"] == len(entries) or counts["right"] < asked.right_from * len(counted):
        return 1
    return 0 if counted else SKIPPED


def report(asked, parts):
    print(f"\n{results.as_text(parts)}")
    if asked.markdown:
        command = f"script/doctor_corpus --budget {asked.budget:g} --conditions {','.join(asked.conditions)}" + (f" --only {asked.only}" if asked.only else "")
        results.write_section(asked.markdown, "corpus", results.as_markdown(command, time.strftime("%Y-%m-%d"), parts))
    return exit_code(asked, [entry for entries, _ in parts for entry in entries])


def run(asked):
    if asked.aged:
        return aged.compare(asked)
    if asked.gains:
        return gains.compare(asked)
    chosen = [case.scaled(asked.scale) for case in cases.choose(cases.all_cases(), asked.only)]
    if asked.list:
        for case in chosen:
            print(f"{case.name:27} {case.source.name:24} {case.truth:24} {case.origin}")
        return 0
    every = [(asked.results.with_stem(f"{asked.results.stem}-{name}"), {"budget_s": asked.budget, "scale": asked.scale, "neighbours": CONDITIONS[name]}) for name in asked.conditions]
    if asked.rewrite:
        return report(asked, [(stored_entries(file, chosen, settings), settings) for file, settings in every])
    chosen = list(runnable(chosen))
    if asked.by_hand:
        for case in chosen:
            ask.by_hand(case, cases.build(case, asked.programs), asked.by_hand)
        return 0
    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: one CPU shows nothing of how a program scales")
        return SKIPPED
    if not (asked.build / "bin" / "freehold").exists():
        raise cases.CaseError(f"{asked.build}/bin/freehold does not exist; build it, or name the folder with --build")
    for case in chosen:
        cases.build(case, asked.programs)  # all before the first is asked, so that no compiler runs beside it later
    return report(asked, [(ask_all(asked, file, chosen, settings), settings) for file, settings in every])


def main(words):
    asked = parse_arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the doctor and the neighbours are ended
    try:
        return run(asked)
    except (cases.CaseError, OSError) as problem:
        print(f"doctor_corpus: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("doctor_corpus: interrupted; --resume goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
