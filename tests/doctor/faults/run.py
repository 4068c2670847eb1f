#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Asks `freehold doctor` about programs that are each limited by one known cause, and counts how often it is right.

    run.py --doctor FREEHOLD --programs FOLDER [--quick] [--budget SECONDS] [--neighbours N] [PROGRAM[/SETTING]...]

FREEHOLD is the command, FOLDER holds the programs that the sources beside this file were built into; faults.json says what is
wrong with each. Without names all are run, with --quick one setting of each program. An answer that is undecided, or a share
that is off, is asked for again, up to --tries times in all, since the machine may have been busy with something else, and the
table says so. A wrong answer is wrong at the first time: it is what a user would have believed. What share of a loss is the
allocator's in a program with two faults is measured just before, since machines differ, and from hour to hour; where one
fault has nearly all of it, there is nothing to ask. --neighbours keeps so many processes busy meanwhile, wherever the kernel puts
them.
Exit code: 0 no answer was wrong and at least --right-from of them right, where those do not count that were left open because
others used the CPUs; 1 otherwise; 77 nothing to be seen on this machine (one CPU, or all were left open for that); 2 bad usage.
"""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import NO_ANSWER, UNDECIDED  # noqa: E402

TRUTH_TIMES = 5  # what is true of this machine is measured so often
MIXED_BETWEEN = 0.35, 0.65  # of the loss: neither fault has nearly all of it
SHARE_WITHIN = 0.2  # of the share that is the allocator's, where two causes are mixed
BORNE_AT_MOST = 0.1  # of the time is lost where the machine bears a fault: the limit of the doctor, and as much for the noise of short runs
BLAME = {"allocator-lock", "remote-frees", "allocator-false-sharing", "page-faults", "arena-bloat", "mixed"}
SKIPPED = 77


@dataclasses.dataclass
class Case:
    program: str
    setting: str
    expected: str
    quick: bool = False
    half_the_cpus: bool = False  # in a control group that allows the doctor half of the machine
    allocator_share: float | None = None
    budget_times: float = 1  # for what is told apart only by trials that come late
    also: tuple[str, ...] = ()  # answers that are no error: what a person would accept, too
    by_machine: bool = False  # some machines bear it: a program that loses nothing there has no fault

    @property
    def name(self):
        return f"{self.program}/{self.setting}"


@dataclasses.dataclass
class Answer:
    cause: str
    details: str  # what a person wants to see of a wrong one
    allocator_share: float | None = None
    busy: bool = False  # undecided because others used the CPUs
    lost: float = 0.0  # share of the time

    def is_absent(self, case):
        return case.by_machine and self.cause == "none" and self.lost <= BORNE_AT_MOST

    def is_right(self, case):
        if self.cause in case.also:
            return True
        if self.cause != case.expected:
            return False
        return case.allocator_share is None or (
            self.allocator_share is not None and abs(self.allocator_share - case.allocator_share) <= SHARE_WITHIN)

    def is_wrong(self, case):
        """Neither right nor open. A share that is off is not exact, which is another thing; so is one of two causes where the shares are right."""
        return self.cause not in (case.expected, *case.also, UNDECIDED, NO_ANSWER) and not self.is_absent(case) and not self.is_half_right(case)

    def is_half_right(self, case):
        """The greater of two causes is named, and the shares of both are as they were measured just before."""
        return (case.allocator_share is not None and self.allocator_share is not None
                and abs(self.allocator_share - case.allocator_share) <= SHARE_WITHIN)

    def blames_in_vain(self, case):
        return self.cause in BLAME and case.expected not in BLAME


def true_share(options, case):
    """The share of what the program loses on all CPUs that its first part loses, by the program's own clock."""
    cpus = sorted(os.sched_getaffinity(0))
    command = [str(options.programs / case.program), *(["-n", str(options.scale)] if options.scale != 1 else []), "-p", case.setting]

    def parts(on):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=60,
                              preexec_fn=lambda: os.sched_setaffinity(0, on))
        return [float(word) for word in done.stdout.split()]

    runs = [(parts(cpus[:1]), parts(cpus)) for _ in range(TRUTH_TIMES)]
    lost = [statistics.median(run[1][part] for run in runs) - statistics.median(run[0][part] for run in runs) / len(cpus)
            for part in (0, 1)]
    return max(lost[0], 0) / max(lost[0] + lost[1], 1e-9)


def ask(options, case):
    """The doctor's answer for one program. Throws NoControlGroup."""
    program = [options.programs / case.program, *(["-n", str(options.scale)] if options.scale != 1 else []), case.setting]
    budget = options.budget * case.budget_times
    diagnosis, told = harness.ask(options.doctor, ["--budget", str(budget), "--", *program], 60 + 5 * budget,
                                  options.keep and options.keep / f"{case.program}-{case.setting}", os.cpu_count() / 2 if case.half_the_cpus else None)
    return answer_of(diagnosis) if diagnosis else Answer(NO_ANSWER, told)


def answer_of(diagnosis):
    verdict = diagnosis["verdict"]
    doubt = f", doubt: {verdict['doubt']} of {verdict['suspected']}" if verdict.get("doubt") else ""
    parts = ", ".join(f"{part['cause']} {part['share']['value']:.0%}" for part in verdict["parts"])
    return Answer(verdict["cause"], f"lost {verdict['lost']['value']:.0%} of the time: {parts or 'no parts'}; others had {verdict['disturbance']:.0%}{doubt}",
                  verdict["allocator_share"]["value"], verdict.get("doubt") == "busy-machine", verdict["lost"]["value"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--doctor", required=True, help="the freehold command")
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--quick", action="store_true", help="one setting of each program")
    parser.add_argument("--budget", type=float, default=30, help="seconds for each")
    parser.add_argument("--scale", type=float, default=1, help="of the programs' work")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the doctor's reports")
    parser.add_argument("--tries", type=int, default=2, help="how often a program is asked about")
    parser.add_argument("--right-from", type=float, default=0.95, help="share of the answers that must be right")
    parser.add_argument("--neighbours", type=int, default=0, help="processes that keep a CPU busy each meanwhile")
    parser.add_argument("only", nargs="*", metavar="PROGRAM[/SETTING]")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: one CPU shows nothing of how a program scales")
        return SKIPPED
    cases = [Case(**case) for case in json.loads((pathlib.Path(__file__).parent / "faults.json").read_text())]
    if unknown := [name for name in options.only if not any(name in (case.program, case.name) for case in cases)]:
        parser.error(f"no such program: {' '.join(unknown)}")
    if options.only:
        cases = [case for case in cases if case.program in options.only or case.name in options.only]
    elif options.quick:
        cases = [case for case in cases if case.quick]

    with harness.neighbours(options.neighbours):
        return ask_about(options, cases)


def ask_about(options, cases):
    """Asks, prints, and returns the exit code."""
    counts = collections.Counter()
    right = wrong = blamed = busy = absent = 0
    for case in cases:
        began = time.monotonic()
        if case.allocator_share is not None:
            case.allocator_share = true_share(options, case)
            if not MIXED_BETWEEN[0] <= case.allocator_share <= MIXED_BETWEEN[1]:
                print(f"{case.name}: absent: one fault has nearly all here, the allocator {case.allocator_share:.0%}", flush=True)
                continue
        try:
            answer = ask(options, case)
            tries = 1
            while tries < options.tries and not (answer.is_right(case) or answer.is_wrong(case) or answer.is_absent(case)):
                print(f"{case.name}: {answer.cause}, not {case.expected} ({answer.details}); asked once more", flush=True)
                answer = ask(options, case)
                tries += 1
        except harness.NoControlGroup as why:
            print(f"{case.name}: skipped, no control group: {why}")
            continue
        counts[case.expected, answer.cause] += 1
        right += answer.is_right(case)
        wrong += answer.is_wrong(case)
        blamed += answer.blames_in_vain(case)
        busy += answer.busy
        absent += answer.is_absent(case)
        mark = ("absent: this machine bears it" if answer.is_absent(case) else
                ("right" if tries == 1 else f"right at try {tries}") if answer.is_right(case) else
                f"WRONG, it is {case.expected}" if answer.is_wrong(case) else f"open, it is {case.expected}")
        print(f"{case.name}: {answer.cause}: {mark} ({answer.details}; {time.monotonic() - began:.0f} s)", flush=True)
    asked = counts.total()
    print()
    harness.print_matrix(counts)
    counted = asked - busy - absent
    print(f"\n{right} of {counted} right ({right / max(1, counted):.1%}; at least {options.right_from:.0%} wanted)"
          f"\n{busy} more left open because others used the CPUs, {absent} not to be seen on this machine"
          f"\n{wrong} wrong (never wanted), of these the allocator blamed in vain {blamed} times")
    if not asked or wrong or right < options.right_from * counted:
        return 1
    return 0 if counted or options.neighbours else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
