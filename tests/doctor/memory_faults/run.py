#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Asks `freehold doctor --memory` about programs that each hold memory for one known reason, and counts how often it is right.

    run.py --doctor FREEHOLD --programs FOLDER [--repeat N] [--allocators LIST] [--jobs N] [PROGRAM...]

FREEHOLD is the command, FOLDER holds the programs that the sources beside this file were built into; reasons.json says why each
takes what it takes. An answer that is undecided is asked for again, up to --tries times in all; a wrong one is wrong at the first
time: it is what a user would have believed. The programs mostly wait, so that several are asked about at the same time (--jobs).
Exit code: 0 no answer was wrong and at least --right-from of them right; 1 otherwise; 2 bad usage.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import NO_ANSWER, UNDECIDED  # noqa: E402

ALLOCATOR = {"rounding", "arenas", "caches", "free-pages", "holes"}


def ask(options, program):
    """The doctor's cause for one program, and what a person wants to see of a wrong one."""
    allocators = ["--allocators", options.allocators] if options.allocators else []
    words = ["--memory", "--repeat", str(options.repeat), *allocators, "--", options.programs / program]
    report, told = harness.ask(options.doctor, words, 240, options.keep and options.keep / program)
    if not report:
        return NO_ANSWER, told
    verdict = report["verdict"]
    mebibyte = 1 << 20
    parts = sorted(verdict["parts"], key=lambda part: -part["mean_bytes"])[:3]
    details = ", ".join(f"{part['part']} {part['mean_bytes'] / mebibyte:.1f}" for part in parts)
    doubt = f"; doubt: {verdict['doubt']}" if verdict["doubt"] else ""
    return verdict["cause"], f"{verdict['mean_bytes'] / mebibyte:.1f} MiB: {details}{doubt}"


def answer(options, case):
    """Asks until the answer is decided. Returns the cause, the number of tries, and a line for the person who reads."""
    began = time.monotonic()
    for tries in range(1, options.tries + 1):
        cause, details = ask(options, case["program"])
        if cause not in (UNDECIDED, NO_ANSWER):
            break
    is_right = cause == case["expected"]
    mark = (("right" if tries == 1 else f"right at try {tries}") if is_right else
            f"open, it is {case['expected']}" if cause in (UNDECIDED, NO_ANSWER) else f"WRONG, it is {case['expected']}")
    print(f"{case['program']}: {cause}: {mark} ({details}; {time.monotonic() - began:.0f} s)", flush=True)
    return cause


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--doctor", required=True, help="the freehold command")
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each question")
    parser.add_argument("--allocators", help="what is tried [all]")
    parser.add_argument("--jobs", type=int, default=1, help="questions at the same time")
    parser.add_argument("--tries", type=int, default=2, help="how often a program is asked about")
    parser.add_argument("--right-from", type=float, default=0.9, help="share of the answers that must be right")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the doctor's reports")
    parser.add_argument("only", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    cases = json.loads((pathlib.Path(__file__).parent / "reasons.json").read_text())
    if unknown := set(options.only) - {case["program"] for case in cases}:
        parser.error(f"no such program: {' '.join(sorted(unknown))}")
    if options.only:
        cases = [case for case in cases if case["program"] in options.only]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        causes = list(pool.map(lambda case: answer(options, case), cases))
    asked = [(case["expected"], cause) for case, cause in zip(cases, causes)]
    counts = collections.Counter(asked)
    right = sum(expected == found for expected, found in asked)
    wrong = [(expected, found) for expected, found in asked if found not in (expected, UNDECIDED, NO_ANSWER)]
    blamed = sum(found in ALLOCATOR and expected not in ALLOCATOR for expected, found in wrong)
    print()
    harness.print_matrix(counts)
    print(f"\n{right} of {len(asked)} right (at least {options.right_from:.0%} wanted)"
          f"\n{len(wrong)} wrong (never wanted), of these the allocator blamed in vain {blamed} times")
    return 0 if asked and not wrong and right >= options.right_from * len(asked) else 1


if __name__ == "__main__":
    sys.exit(main())
