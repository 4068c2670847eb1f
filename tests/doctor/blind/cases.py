# SPDX-License-Identifier: MIT
"""The cases: what the head of each file in programs/ says, and how its program is built.

A head is a comment with lines `Case NAME: arguments`, each followed by indented ones:

    Truth: the cause, as a term of the doctor's JSON (docs/doctor-schema.md, verdict.cause), or `too-short`
    Right: terms that count as right. `mixed+` is a mix that blames the allocator, `mixed-` one that does not;
           `none(lost<0.25)` counts only if the report's own trials lost less than that
    Env:   NAME=value ... for the program; the value {n} makes NAME the doctor's --env
    Build: more flags for the compiler
    Quota: CPUs that a control group allows the doctor and the program
    Unsaid: expression that the headline must not match
    Seen:  what was measured by hand, without the doctor
    Corrected, Mended: the day after an answer on which the head was changed, or the program, and what was measured by hand
    Ask:   `memory`: the question is that of `doctor --memory`, and the terms are its causes (docs/memory.md)

`undecided` is never wrong. `none` counts as right where this machine bears the cause: asking.py times the program by hand first. {n} among the arguments makes the doctor sweep --threads 1,2, otherwise it sweeps the CPUs.
"""

import fnmatch
import itertools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parent / "programs"
PUBLIC = Path(__file__).resolve().parents[1] / "public"  # rebuilt from what others wrote of their programs
CAUSES = ("none", "allocator-lock", "remote-frees", "allocator-false-sharing", "page-faults", "arena-bloat", "own-lock", "own-sharing",
          "own-page-faults", "memory-bandwidth", "cpu-quota", "serial", "mixed", "undecided")
BLAMING = ("allocator-lock", "remote-frees", "allocator-false-sharing", "page-faults", "arena-bloat", "mixed+")
ACCEPTABLE = set(CAUSES) - {"mixed"} | {"mixed+", "mixed-"}
MEMORY_CAUSES = ("leak", "live-data", "one-block", "rounding", "arenas", "caches", "free-pages", "holes", "mappings", "stacks", "files",
                 "shared-memory", "page-tables", "mixed", "little", "undecided")
MEMORY_BLAMING = ("rounding", "arenas", "caches", "free-pages", "holes")
KEYS = ("Truth", "Right", "Env", "Build", "Quota", "Unsaid", "Seen", "Ask", "Corrected", "Mended")


class CaseError(Exception):
    """Something that the person who asked can mend; its text is one line."""


@dataclass(frozen=True)
class Condition:
    """One term of `Right:`; `most_lost` is none where it counts always."""

    term: str
    most_lost: float | None = None


@dataclass(frozen=True)
class Case:
    name: str
    source: Path
    arguments: tuple[str, ...]
    truth: str
    right: tuple[Condition, ...]
    environment: dict[str, str] = field(default_factory=dict)
    build: tuple[str, ...] = ()
    quota: float | None = None
    unsaid: str | None = None
    seen: str = ""
    changed: str = ""
    asks_memory: bool = False

    @property
    def language(self):
        return {".c": "C", ".cpp": "C++", ".py": "Python", ".java": "Java", ".rs": "Rust"}[self.source.suffix]

    @property
    def variable(self):
        """The environment variable that says how many threads, or none."""
        return next((name for name, value in self.environment.items() if value == "{n}"), None)

    @property
    def fixed_environment(self):
        return {name: value for name, value in self.environment.items() if value != "{n}"}

    @property
    def may_blame_allocator(self):
        return any(condition.term in BLAMING + MEMORY_BLAMING for condition in self.right)

    @property
    def story(self):
        """What the head says under `Why:`, and the thread that it comes from, as `owner/name/issues/number`, both empty where there is none;
        and what was changed."""
        head = " ".join(line[2:].strip() for line in itertools.takewhile(lambda line: line.startswith("//"), self.source.read_text().splitlines()))
        match = re.search(r"Why: +(.*?) *github\.com/(\S+/\d+)", head)
        return (*(match.groups() if match else ("", "")), self.changed)


def parse_condition(text, where):
    match = re.fullmatch(r"([a-z]+(?:-[a-z]+)*[+-]?)(?:\(lost<([0-9.]+)\))?", text)
    if not match or match[1] not in ACCEPTABLE | set(MEMORY_CAUSES):
        raise CaseError(f"{where}: '{text}' is no term of a verdict")
    return Condition(match[1], float(match[2]) if match[2] else None)


def change_of(entries):
    """What was changed after an answer, and when; such a case says less of the doctor."""
    told = [f"{what} after measurement by hand on {entries[key].split(':')[0]}"
            for key, what in (("Corrected", "head corrected"), ("Mended", "program mended")) if key in entries]
    return ", ".join(told)


def parse_case(source, name, arguments, entries):
    where = f"{source.name}, case {name}"
    for key in ("Truth", "Right"):
        if key not in entries:
            raise CaseError(f"{where}: has no line '{key}:'")
    if entries["Truth"] not in CAUSES + MEMORY_CAUSES + ("too-short",):
        raise CaseError(f"{where}: '{entries['Truth']}' is no cause")
    return Case(name, source, tuple(arguments.split()), entries["Truth"],
                tuple(parse_condition(text, where) for text in entries["Right"].split()),
                dict(pair.split("=", 1) for pair in entries.get("Env", "").split()), tuple(entries.get("Build", "").split()),
                float(entries["Quota"]) if "Quota" in entries else None, entries.get("Unsaid"), entries.get("Seen", ""), change_of(entries), entries.get("Ask") == "memory")


def read_head(source):
    """The cases of one file, in its order."""
    found, entries, name, arguments = [], {}, None, ""
    for line in source.read_text().splitlines():
        if not (comment := re.match(r"(?://|#)(.*)", line)):
            break
        if match := re.fullmatch(r" Case ([a-z0-9_]+):(.*)", comment[1]):
            if name:
                found.append(parse_case(source, name, arguments, entries))
            name, arguments, entries = match[1], match[2], {}
        elif name and (match := re.fullmatch(r"   ([A-Z][a-z]+): (.*)", comment[1])):
            if match[1] not in KEYS:
                raise CaseError(f"{source.name}, case {name}: unknown line '{match[1]}:'")
            entries[match[1]] = match[2].strip()
        elif name and (match := re.fullmatch(r"     +(\S.*)", comment[1])) and entries:
            entries[list(entries)[-1]] += " " + match[1]
    if not name:
        raise CaseError(f"{source.name}: its head names no case")
    return found + [parse_case(source, name, arguments, entries)]


def all_cases(folder=PROGRAMS):
    cases = [case for source in sorted(folder.iterdir()) if source.suffix in (".c", ".cpp", ".py", ".java", ".rs")
             for case in read_head(source)]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise CaseError(f"two cases are called {name}")
    return cases


def choose(cases, pattern):
    """Those whose name or truth one of the patterns, separated by commas, matches."""
    patterns = pattern.split(",") if pattern else ["*"]
    chosen = [case for case in cases if any(fnmatch.fnmatchcase(text, p) for p in patterns for text in (case.name, case.truth))]
    if not chosen:
        raise CaseError(f"no case matches '{pattern}'; --list names them")
    return chosen


def needed_tool(case):
    """What has to be there to build and run a case, and where it is; none where it is not."""
    if case.quota and not harness.quota_folder():
        return "a control group for a quota", None
    tool = {"C": "gcc", "C++": "g++", "Java": "javac", "Rust": "rustc"}.get(case.language)
    return tool or "python3", shutil.which(tool) if tool else sys.executable


def build(case, folder):
    """The command that runs a case, after its program was compiled into `folder`, if need be."""
    if case.language == "Python":
        return [os.path.realpath(sys.executable), str(case.source)]
    target = folder / ("-".join((case.source.stem, *case.build)).replace("=", "_"))
    if case.language == "Java":
        target = folder / f"{case.source.stem}.classes"
    if not target.exists() or target.stat().st_mtime < max(file.stat().st_mtime for file in (case.source, *case.source.parent.glob("*.h*"))):
        compile_to(case, target)
    if case.language == "Java":
        return [os.path.realpath(shutil.which("java")), *case.build, "-cp", str(target), case.source.stem]
    return [str(target)]


def compile_to(case, target):
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = {"C": ["gcc", "-std=gnu11", "-O2", "-g", *warnings, "-pthread", "-I", str(ROOT)],
               "C++": ["g++", "-std=c++20", "-O2", "-g", *warnings, "-pthread", "-I", str(ROOT)],
               "Rust": ["rustc", "--edition", "2021", "-O", "-g"],
               "Java": ["javac", "-d"]}[case.language]
    target.parent.mkdir(parents=True, exist_ok=True)
    if case.language == "Java":
        command = [*command, str(target), str(case.source)]
    else:
        command = [*command, *case.build, str(case.source), "-o", str(target)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise CaseError(f"{case.source.name} does not compile: {' '.join(ended.stderr.split())[:400]}")
    if case.language == "Java":
        os.utime(target)
