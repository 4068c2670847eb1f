#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which misuse Freehold catches in which mode: runs every kind of kinds.toml, each in a process of its own.

  table.py                    runs all, prints how each ended in each mode
  table.py --write            stores that in results.json
  table.py --check            fails if a kind does not end as results.json says, if checked mode misses a kind that kinds.toml does not
                              excuse, if a correct program is minded, or if docs/hardening.md has other figures

  --build FOLDER              the build whose programs and library are run (default: build/release)
  --checked-build             it is one with FREEHOLD_CHECKED: it has a column of its own for what is not malloc
  --only PATTERN              only the kinds whose name matches
  --runs N                    each kind N times (default: 1; with --write 8)
  --verbose                   what each process wrote

A run is one of CLASSES, the worst first:
  hangs             it did not end
  not seen          it ended as a correct program does
  caught otherwise  it was ended, by a fault or with other words than those of the kind
  by chance         only of several runs together: some were caught, and some were not
  caught            one line that names the kind, and SIGABRT, or the fault that it names; for leaks and contents see kinds.toml
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "hardening.md"
CLASSES = HANGS, NOT_SEEN, OTHERWISE, BY_CHANCE, CAUGHT = ["hangs", "not seen", "caught otherwise", "by chance", "caught"]
FAULTS = ("use", "beyond", "ahead")  # words of reports after which the fault itself may end the process
TIMEOUT_SECONDS = 60
NO_SUCH_KIND = (2, 3)  # exit codes of the programs
LEAKED = re.compile(r"^freehold: leaked: (\d+) bytes in (\d+) blocks$", re.MULTILINE)
MODES = {
    "default": {}, "checked": {"FREEHOLD_CHECK": "1"}, "sampled": {"FREEHOLD_GUARD_RATE": "1"},
    "both": {"FREEHOLD_CHECK": "1", "FREEHOLD_GUARD_RATE": "1"}, "checked-build": {},
}
OF_MALLOC = ["default", "checked", "sampled", "both"]
OF_PARTS = ["default", "checked", "checked-build"]  # pools, heaps, thread_alloc
PROMISES = {  # the modes that must catch everything but what kinds.toml excuses
    "malloc": ("checked",), "heap": ("checked", "checked-build"), "pool": ("checked", "checked-build"),
    "thread_alloc": ("checked",), "thread_alloc_owner_pages": ("checked",),
}
MORE_RUNS = 8
RUNS_BY_CHANCE = 64  # of a kind that is caught in one run of four: none of 64 catches it once in a hundred million times
# The modes in which a correct program must not be minded; the second half beside --runs.
LEGAL_MODES = [{}, {"FREEHOLD_CHECK": "1"}, {"FREEHOLD_GUARD_RATE": "1"}, {"FREEHOLD_CHECK": "1", "FREEHOLD_GUARD_RATE": "3"}]
# Of conformance.malloc_api: what takes seconds where each block has a page or a canary, a total that the modes enlarge, and a block that guards move.
NOT_IN_LEGAL_MODES = ("Malloc.Gigabytes*:Free.EverySize*:Calloc.LargeBlock*:Calloc.MemoryUsed*:Realloc.Between*:Realloc.ToZero*:Realloc.SystemRefuses*:"
                      "Realloc.WithinTheUsableSize*:"
                      "Aligned.Every*:UsableSize.Above*:FreeSized.*:Mallinfo2.MemoryInUse*:MallocInfo.Document*")
MORE_LEGAL_MODES = [{"FREEHOLD_CHECK": "1", **more} for more in (
    {"FREEHOLD_CHECK_CONTENTS": "0"}, {"FREEHOLD_CHECK_CONTENTS": "none"}, {"FREEHOLD_CHECK_QUARANTINE": "0"}, {"FREEHOLD_CHECK_RANDOM": "0"},
    {"FREEHOLD_CHECK_FILL": "0"}, {"FREEHOLD_CHECK_CANARY": "0"}, {"FREEHOLD_CHECK_STACKS": "8"}, {"FREEHOLD_CHECK_ABORT": "0"},
    {"FREEHOLD_CHECK_QUARANTINE": "200000000"}, {"FREEHOLD_GUARD_RATE": "1"})]


@dataclasses.dataclass(frozen=True)
class Kind:
    """One misuse, as kinds.toml describes it."""
    name: str
    argument: str
    program: str
    says: tuple
    also: tuple
    look: str
    environment: dict
    steady: bool
    unseen: dict
    more: dict


def kinds_of(description):
    """{title of a group: [kinds]} of what kinds.toml says."""
    groups = {}
    for key, group in description["groups"].items():
        prefix = f"{key}." if "like" in group else ""
        group = {**description["groups"][group["like"]], **group} if "like" in group else group
        kinds = []
        for name, about in group["kinds"].items():
            about = {"what": about} if isinstance(about, str) else about
            kinds.append(Kind(prefix + name, name, group.get("program", "malloc"), tuple(about.get("says", group["says"])),
                              tuple(about.get("also", ())), group.get("look", "report"), group.get("environment", {}),
                              about.get("steady", True), about.get("unseen", {}), about))
        groups[group["title"]] = kinds
    return groups


@dataclasses.dataclass(frozen=True)
class Outcome:
    code: int  # negative: the signal that ended it
    out: str
    err: str
    hung: bool = False


class Runner:
    """Runs kinds in modes, with the programs and the library of one build."""

    def __init__(self, build, words):
        self.programs, self.library, self.words = build / "tests" / "misuse", build / "libfreehold.so", words
        self.clean = {name: value for name, value in os.environ.items() if not name.startswith(("FREEHOLD_", "LD_PRELOAD", "MALLOC_"))}
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def run(self, command, preloaded, environment):
        preload = {"LD_PRELOAD": str(self.library)} if preloaded else {}
        try:
            done = subprocess.run(command, env={**self.clean, **preload, **environment}, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            return Outcome(0, "", (late.stderr or b"").decode(errors="replace"), hung=True)
        return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def run_kind(self, kind, mode, argument):
        program = self.programs / f"misuse_{kind.program}_program"
        outcome = self.run([str(program), argument], kind.program == "malloc", {**MODES[mode], **kind.environment})
        if outcome.code in NO_SUCH_KIND:
            raise SystemExit(f"{program} {argument}: exit code {outcome.code}: no such kind (2), or another malloc answers (3)")
        return outcome

    def leaked(self, argument, kind, mode):
        """(bytes, blocks) of the list at exit; None if there is none."""
        outcome = self.run_kind(kind, mode, argument)
        found = LEAKED.search(outcome.err)
        return (int(found[1]), int(found[2])) if found and outcome.code == 0 and outcome.out == "still alive\n" else None

    def class_of_leaks(self, kind, mode):
        before, after = (self.leaked(name, kind, mode) for name in (kind.more.get("against", "leak_of_nothing"), kind.name))
        if before is None and after is None:
            return NOT_SEEN
        before = before or (0, 0)
        difference = after and (after[0] - before[0], after[1] - before[1])
        return CAUGHT if difference == (kind.more["bytes"], kind.more["blocks"]) else OTHERWISE

    def says_it(self, kind, mode, outcome):
        """Whether the process ended with one of the reports that are right for the kind."""
        right = kind.says if mode.startswith("checked") else kind.says + kind.also
        lines = outcome.err.splitlines()
        said = [word for word in right if lines and re.fullmatch(f"freehold: {re.escape(self.words[word])}: 0x[0-9a-f]+", lines[0])]
        ended = outcome.code == -signal.SIGABRT or (outcome.code == -signal.SIGSEGV and any(word in FAULTS for word in said))
        return bool(said) and ended and all(line.startswith("freehold:   ") for line in lines[1:])

    def classify(self, kind, mode):
        if kind.look == "leaks":
            return self.class_of_leaks(kind, mode), None
        outcome = self.run_kind(kind, mode, kind.argument)
        if outcome.hung:
            return HANGS, outcome
        if kind.look == "contents" and outcome.code == 0:
            return (CAUGHT if f"contents: {kind.more['contents']}\n" in outcome.out else NOT_SEEN), outcome
        if outcome.code == 0:
            return NOT_SEEN, outcome
        return (CAUGHT if kind.look == "report" and self.says_it(kind, mode, outcome) else OTHERWISE), outcome


def class_of(ended):
    """The class of several runs together."""
    classes = {result for result, _ in ended}
    return BY_CHANCE if CAUGHT in classes and len(classes) > 1 else min(classes, key=CLASSES.index)


def modes_of(program, checked_build):
    if program == "malloc":
        return ["checked"] if checked_build else OF_MALLOC
    return ["checked-build"] if checked_build else ["default", "checked"]


def run_all(runner, kinds, times, checked_build):
    """{kind: {mode: [(class, outcome)]}}."""
    work = [(kind, mode) for kind in kinds for mode in modes_of(kind.program, checked_build) for _ in range(times)]
    seen = {}
    with ThreadPoolExecutor(2) as pool:
        for (kind, mode), ended in zip(work, pool.map(lambda pair: runner.classify(*pair), work)):
            seen.setdefault(kind.name, {}).setdefault(mode, []).append(ended)
    return seen


def describe(kind, mode, ended):
    outcome = min(ended, key=lambda one: CLASSES.index(one[0]))[1]
    text = "" if outcome is None else f"exit code {outcome.code}; " + (outcome.err.strip().splitlines() or [outcome.out.strip()])[0]
    return f"{kind} ({mode}): {' '.join(result for result, _ in ended)}; {text}"


def rows_of_page(groups, stored):
    """How the rows of docs/hardening.md begin: of each group, how many kinds each mode caught, and how many it ended in another way."""
    for title, kinds in groups.items():
        cells = []
        for mode in OF_MALLOC if kinds[0].program == "malloc" else OF_PARTS:
            results = [stored[kind.name][mode] for kind in kinds]
            otherwise = results.count(OTHERWISE) + results.count(BY_CHANCE)
            cells.append(f"{results.count(CAUGHT)}" + (f" + {otherwise}" if otherwise else ""))
        yield f"| {title} | {len(kinds)} | " + " | ".join(cells) + " |"


def stored_results():
    """The file has a row for all kinds with the same results: {"kinds": their names, mode: class ...}. Here each kind has its own."""
    return {kind: row for row in json.loads(RESULTS.read_text()) for kind in row.pop("kinds").split()}


def store(kinds, seen):
    stored, rows = stored_results(), {}
    for kind in kinds:
        merged = {**stored.get(kind.name, {}), **{mode: class_of(ended) for mode, ended in seen.get(kind.name, {}).items()}}
        rows.setdefault(json.dumps({mode: merged[mode] for mode in MODES if mode in merged}), []).append(kind.name)
    lines = (json.dumps({"kinds": " ".join(names), **json.loads(row)}) for row, names in rows.items())
    RESULTS.write_text("[\n " + ",\n ".join(lines) + "\n]\n")


def is_steady(kind, mode):
    """Where chance decides what is seen: which thread comes first, which address is free, on which side of a block the page ends."""
    return mode in PROMISES[kind.program] or (kind.steady and mode not in ("sampled", "both"))


def complaints_of_kind(kind, seen, before, again):
    """What is wrong with the runs of one kind. again(kind, mode) runs it several times more."""
    for mode, ended in seen.items():
        if not is_steady(kind, mode):
            if class_of(ended) != before[mode] and class_of(ended + again(kind, mode)) not in (before[mode], CAUGHT, BY_CHANCE):
                yield f"it was {before[mode]}: " + describe(kind.name, mode, ended)
        elif class_of(ended) != before[mode]:
            yield f"results.json says {before[mode]}; if that is right, table.py --write: " + describe(kind.name, mode, ended)
        if mode in PROMISES[kind.program] and class_of(ended) != CAUGHT and mode not in kind.unseen:
            yield f"{mode} must catch it: " + describe(kind.name, mode, ended)


def legal_runs(programs, thorough):
    """(command, environment) of all correct programs in all modes."""
    misuse = str(programs / "misuse_malloc_program")
    listed = subprocess.run([misuse, "--list"], capture_output=True, text=True, check=True).stdout.split()
    commands = [[misuse, name] for name in listed if name.startswith("legal")]
    commands += [[str(programs.parent / "linking" / f"linking_replaced_{form}_preloaded")] for form in ("new", "array_new")]
    conformance = [str(programs.parent / "conformance" / "conformance_malloc_api"), f"--gtest_filter=-{NOT_IN_LEGAL_MODES}"]
    for command in [*commands, conformance]:
        for environment in LEGAL_MODES + (MORE_LEGAL_MODES if thorough else []):
            if environment or command != conformance:  # which ctest runs without
                yield command, environment


def complaints_of_legal(runner, thorough):
    todo = list(legal_runs(runner.programs, thorough))
    with ThreadPoolExecutor(2) as pool:
        for (command, environment), outcome in zip(todo, pool.map(lambda one: runner.run(one[0], True, one[1]), todo)):
            if outcome.code != 0 or outcome.err or outcome.hung:
                words = " ".join(f"{name}={value}" for name, value in environment.items())
                yield f"a correct program was minded: {words} {' '.join(command)}: {outcome.code}; {outcome.err or outcome.out}".rstrip()


def check(runner, groups, seen, thorough):
    stored = stored_results()

    def again(kind, mode):
        return [runner.classify(kind, mode) for _ in range(RUNS_BY_CHANCE)]

    complaints = [c for kinds in groups.values() for kind in kinds if kind.name in seen
                  for c in complaints_of_kind(kind, seen[kind.name], stored[kind.name], again)]
    complaints += complaints_of_legal(runner, thorough)
    page = PAGE.read_text()
    complaints += [f"docs/hardening.md has no row that begins: {row}" for row in rows_of_page(groups, stored) if f"\n{row}" not in page]
    print("\n".join([*complaints, f"{len(seen)} kinds: {len(complaints)} complaints"]))
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(prog="table.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "release")
    parser.add_argument("--checked-build", action="store_true")
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    description = tomllib.loads((HERE / "kinds.toml").read_text())
    groups = kinds_of(description)
    kinds = [kind for of_group in groups.values() for kind in of_group]
    runner = Runner(options.build.resolve(), description["words"])
    times = options.runs or (MORE_RUNS if options.write else 1)
    seen = run_all(runner, [kind for kind in kinds if options.only.search(kind.name)], times, options.checked_build)
    if options.check:
        return check(runner, groups, seen, times > 1)
    if options.write:
        store(kinds, seen)
        return 0
    for kind, by_mode in seen.items():
        if options.verbose:
            print("\n".join(describe(kind, mode, ended) for mode, ended in by_mode.items()))
        else:
            print(f"{kind:45}" + " ".join(f"{class_of(ended):17}" for ended in by_mode.values()))
    return 0


sys.exit(main())
