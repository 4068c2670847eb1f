#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which misuse is caught by which malloc in which mode: runs every kind of kinds.toml and writes the tables of docs/hardening.md.

  table.py                    runs all, prints what each malloc does
  table.py --write            stores that in results.json, and writes the tables of docs/hardening.md
  table.py --check            runs Freehold's columns: fails if a kind that was caught is not caught any more, if checked mode
                              misses a kind that kinds.toml does not excuse, if a correct program is minded, or if the tables are
                              not those of results.json

  --build FOLDER              the build whose programs and library are run (default: build/release)
  --library FILE              another libfreehold.so than the build's
  --checked-build             it is one with FREEHOLD_CHECKED: it has a column of its own for what is not malloc
  --columns NAME,...          only these (default: all; with --check Freehold's)
  --only PATTERN              only the kinds whose name matches
  --runs N                    each kind N times (default: 1; with --write 8)
  --verbose                   what each process wrote
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bench")]

import runs  # noqa: E402
from driver import peers  # noqa: E402
from runs import BY_CHANCE, CAUGHT, CLASSES, OTHERWISE, Column  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "hardening.md"
SCUDO_OPTIONS = "dealloc_type_mismatch=1:delete_size_mismatch=1:zero_contents=1:quarantine_size_kb=16384:thread_local_quarantine_size_kb=1024:quarantine_max_chunk_size=65536"
PEERS = {  # name -> (label, environment)
    "glibc": ("glibc", {}),
    "glibc-check": ("glibc, `MALLOC_CHECK_=3`", {"MALLOC_CHECK_": "3"}),
    "jemalloc-deb": ("jemalloc", {}),
    "scudo": ("scudo", {"SCUDO_OPTIONS": SCUDO_OPTIONS}),
    "hardened_malloc": ("hardened_malloc", {}),
}
MODES = {  # of Freehold: name -> (label, environment)
    "default": ("Freehold", {}),
    "checked": ("Freehold, checked", {"FREEHOLD_CHECK": "1"}),
    "sampled": ("Freehold, sampled", {"FREEHOLD_GUARD_RATE": "1"}),
    "both": ("Freehold, both", {"FREEHOLD_CHECK": "1", "FREEHOLD_GUARD_RATE": "1"}),
}
PART_MODES = {"default": MODES["default"], "checked": MODES["checked"], "checked-build": ("checked build", {})}  # of pools, heaps, thread_alloc
OF_A_CHECKED_BUILD = ["checked", "checked-build"]
OF_ANOTHER_BUILD = ["default", "checked", "sampled", "both"]
PROMISES = {  # the columns that must catch everything but what kinds.toml excuses
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


def peer_column(name):
    """Raises peers.Missing."""
    label, environment = PEERS[name]
    if name == "glibc-check":
        found = next(pathlib.Path("/usr/lib").glob("*/libc_malloc_debug.so.0"), None)
        if found is None:
            raise peers.Missing("libc_malloc_debug.so.0 is not there")
        return Column(name, label, environment, str(found), version=peers.find("glibc").version)
    allocator = peers.find(name)
    return Column(name, label, environment, allocator.library or "", version=allocator.version)


def columns_of(library, program, names):
    """The columns of a group's program. Says which are missing, and why."""
    if program != "malloc":
        if "checked-build" in names:
            names = ["checked-build"]
        return [Column(name, label, environment, ours=True) for name, (label, environment) in PART_MODES.items() if name in names]
    found = [Column(name, label, environment, str(library), ours=True) for name, (label, environment) in MODES.items() if name in names]
    for name in PEERS:
        if name in names:
            try:
                found.append(peer_column(name))
            except peers.Missing as reason:
                print(f"{name} is missing: {reason}", file=sys.stderr)
    return found


def class_of(ended):
    """The class of several runs together."""
    classes = {result for result, _ in ended}
    return BY_CHANCE if CAUGHT in classes and len(classes) > 1 else min(classes, key=CLASSES.index)


def run_all(runner, groups, library, names, pattern, times):
    """({kind: {column: [(class, outcome)]}}, {column: Column})."""
    columns = {program: columns_of(library, program, names) for program in {kind.program for kinds in groups.values() for kind in kinds}}
    used = {column.name: column for of_program in columns.values() for column in of_program}
    work = [(kind, column) for kinds in groups.values() for kind in kinds if pattern.search(kind.name) for column in columns[kind.program]]
    seen = {}
    for (kind, column), ended in runner.classify_all(work, times).items():
        seen.setdefault(kind, {})[column] = ended
    return seen, used


def describe(kind, column, ended):
    outcome = min(ended, key=lambda one: CLASSES.index(one[0]))[1]
    text = "" if outcome is None else f"exit code {outcome.code}; " + (outcome.err.strip().splitlines() or [outcome.out.strip()])[0]
    return f"{kind} ({column}): {' '.join(result for result, _ in ended)}; {text}"


def summary_of(groups, stored, columns):
    """Of each group, how many kinds each column caught, and how many it ended in another way."""
    lines = ["| | kinds | " + " | ".join(column["label"] for column in columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for title, kinds in groups.items():
        cells = []
        for column in columns:
            results = [stored["kinds"].get(kind.name, {}).get(column["name"]) for kind in kinds]
            otherwise = results.count(OTHERWISE) + results.count(BY_CHANCE)
            cells.append(f"{results.count(CAUGHT)}" + (f" + {otherwise}" if otherwise else ""))
        lines.append(f"| {title} | {len(kinds)} | " + " | ".join(cells) + " |")
    return lines


def render(groups, stored):
    """What stands between the marks of docs/hardening.md."""
    of_malloc = {title: kinds for title, kinds in groups.items() if kinds[0].program == "malloc"}
    of_parts = {title: kinds for title, kinds in groups.items() if kinds[0].program != "malloc"}
    columns = stored["columns"]
    part_columns = [column for column in columns if column["name"] in PART_MODES]
    columns = [column for column in columns if column["name"] != "checked-build"]
    lines = summary_of(of_malloc, stored, columns)
    if of_parts:
        lines += ["", *summary_of(of_parts, stored, part_columns)]
    versions = ", ".join(f"{column['label']} {column['version']}" for column in columns if column["version"])
    lines += ["", f"The figure is of kinds that end in one line that names the kind, then abort; behind + of those that end in a fault or other words, or not in every run. Versions: {versions}."]
    return "\n".join(lines)


def write_page(text):
    begin, end = "<!-- begin misuse: written by tests/misuse/table.py -->\n", "\n<!-- end misuse -->"
    page = PAGE.read_text()
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{PAGE}: the marks '{begin.strip()}' and '{end.strip()}' must stand in the text, once")
    return f"{before}{begin}{text}{end}{after}"


def stored_results():
    """The file has a row for all kinds with the same results: {"kinds": their names, column: class ...}. Here each kind has its own."""
    if not RESULTS.exists():
        return {"columns": [], "kinds": {}}
    stored = json.loads(RESULTS.read_text())
    return {"columns": stored["columns"], "kinds": {kind: row for row in stored["rows"] for kind in row.pop("kinds").split()}}


def store(groups, seen, used):
    stored = stored_results()
    order = [*MODES, "checked-build", *PEERS]
    by_name = {column["name"]: column for column in stored["columns"]}
    by_name.update({column.name: {"name": column.name, "label": column.label, "version": column.version} for column in used.values()})
    names = [kind.name for kinds in groups.values() for kind in kinds]
    rows = {}
    for name in names:
        merged = {**stored["kinds"].get(name, {}), **{column: class_of(ended) for column, ended in seen.get(name, {}).items()}}
        rows.setdefault(json.dumps({c: merged[c] for c in order if c in merged}), []).append(name)
    columns = ",\n".join(f"  {json.dumps(by_name[name])}" for name in order if name in by_name)
    of_rows = ",\n".join(f'  {json.dumps({"kinds": " ".join(kinds), **json.loads(row)})}' for row, kinds in rows.items())
    RESULTS.write_text(f'{{\n "columns": [\n{columns}\n ],\n "rows": [\n{of_rows}\n ]\n}}\n')
    PAGE.write_text(write_page(render(groups, stored_results())))


def is_steady(kind, column):
    """Where chance decides what is seen: which thread comes first, which address is free, on which side of a block the page ends."""
    return column in PROMISES[kind.program] or (kind.steady and column not in ("sampled", "both"))


def complaints_of_kind(kind, seen, stored, again):
    """What is wrong with the runs of one kind in Freehold's columns. again(kind, column) runs it several times more."""
    for column, ended in seen.items():
        before = stored["kinds"].get(kind.name, {}).get(column)
        if before is None:
            continue
        if not is_steady(kind, column):
            if class_of(ended) != before and class_of(ended + again(kind, column)) not in (before, CAUGHT, BY_CHANCE):
                yield f"it was {before}: " + describe(kind.name, column, ended)
        elif class_of(ended) != before:
            yield f"the table says {before}; if that is right, table.py --write: " + describe(kind.name, column, ended)
        if column in PROMISES[kind.program] and class_of(ended) != CAUGHT and column not in kind.unseen:
            yield f"{column} must catch it: " + describe(kind.name, column, ended)


def legal_runs(programs, thorough):
    """(what is run, its command, environment) of all correct programs in all modes."""
    listed = subprocess_lines([str(programs / "misuse_malloc_program"), "--list"])
    commands = [(programs / "misuse_malloc_program", [name]) for name in listed if name.startswith("legal")]
    commands += [(programs.parent / "linking" / f"linking_replaced_{form}_preloaded", []) for form in ("new", "array_new")]
    conformance = programs.parent / "conformance" / "conformance_malloc_api", [f"--gtest_filter=-{NOT_IN_LEGAL_MODES}"]
    for program, argument in [*commands, conformance]:
        for environment in LEGAL_MODES + (MORE_LEGAL_MODES if thorough else []):
            if environment or program != conformance[0]:  # which ctest runs without
                yield program, argument, environment


def subprocess_lines(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def complaints_of_legal(runner, library, programs, thorough):
    column = columns_of(library, "malloc", ["default"])[0]
    todo = list(legal_runs(programs, thorough))
    with runs.ThreadPoolExecutor(runner.jobs) as pool:
        for (program, argument, environment), outcome in zip(todo, pool.map(lambda one: runner.mind_legal(*one[:2], column, one[2]), todo)):
            if outcome is not None:
                words = " ".join(f"{name}={value}" for name, value in environment.items())
                yield (f"a correct program was minded: {words} {program.name} {' '.join(argument)}: "
                       f"{'hangs' if outcome.hung else outcome.code}; {outcome.err or outcome.out}".rstrip())


def check(runner, groups, library, programs, seen, thorough):
    stored = stored_results()

    def again(kind, name):
        column = next(c for c in columns_of(library, kind.program, [name]) if c.name == name)
        return [runner.classify(kind, column) for _ in range(RUNS_BY_CHANCE)]

    complaints = [c for kinds in groups.values() for kind in kinds for c in complaints_of_kind(kind, seen.get(kind.name, {}), stored, again)]
    complaints += complaints_of_legal(runner, library, programs, thorough)
    if PAGE.read_text() != write_page(render(groups, stored)):
        complaints.append("docs/hardening.md is not of results.json: table.py --write")
    for complaint in complaints:
        print(complaint)
    print(f"{len(seen)} kinds: {len(complaints)} complaints")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(prog="table.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--checked-build", action="store_true")
    parser.add_argument("--columns", type=lambda text: text.split(","))
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    ours = OF_A_CHECKED_BUILD if options.checked_build else OF_ANOTHER_BUILD
    names = options.columns or (ours if options.check or options.checked_build else [*ours, *PEERS])
    if unknown := set(names) - {*ours, *PEERS}:
        parser.error(f"no such column: {', '.join(sorted(unknown))}; there are {', '.join([*ours, *PEERS])}")
    programs = options.build.resolve() / "tests" / "misuse"
    library = (options.library or options.build / "libfreehold.so").resolve()
    description = runs.read_description(HERE / "kinds.toml")
    groups = runs.kinds_of(description)
    runner = runs.Runner(programs, description, options.jobs)
    times = options.runs or (MORE_RUNS if options.write else 1)
    seen, used = run_all(runner, groups, library, names, options.only, times)
    if options.check:
        return check(runner, groups, library, programs, seen, times > 1)
    if options.write:
        store(groups, seen, used)
        return 0
    for kind, by_column in seen.items():
        if options.verbose:
            print("\n".join(describe(kind, column, ended) for column, ended in by_column.items()))
        else:
            print(f"{kind:45}" + " ".join(f"{class_of(ended):17}" for ended in by_column.values()))
    return 0


sys.exit(main())
