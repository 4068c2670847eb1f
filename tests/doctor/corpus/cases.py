# SPDX-License-Identifier: MIT
"""The cases: what cases.txt says of each, and how its program is built."""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import harness

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BLAMING = ("allocator-lock", "remote-frees", "allocator-false-sharing", "page-faults", "arena-bloat", "mixed+")
CAUSES = (*BLAMING, "none", "own-lock", "own-sharing", "own-page-faults", "own-malloc", "memory-bandwidth", "cpu-quota", "serial", "mixed-", "undecided")
MEMORY_BLAMING = ("rounding", "arenas", "caches", "free-pages", "holes")
MEMORY_CAUSES = (*MEMORY_BLAMING, "leak", "live-data", "one-block", "mappings", "stacks", "files", "shared-memory", "page-tables", "little")
CONDITIONS = {"quick", "memory", "parts", "env", "build", "quota", "unsaid", "corrected", "mended"}
LANGUAGES = {".c": ("gcc", "-std=gnu11"), ".cpp": ("g++", "-std=c++20"), ".rs": ("rustc",), ".java": ("javac",), ".py": ("python3",)}


class CaseError(Exception):
    """Something that the person who asked can mend; its text is one line."""


@dataclass(frozen=True)
class Term:
    """An answer that is right; `most_lost` is none where it is so always."""

    term: str
    most_lost: float | None = None


@dataclass(frozen=True)
class Case:
    name: str
    source: Path
    arguments: tuple[str, ...]
    truth: str
    right: tuple[Term, ...]
    conditions: tuple[tuple[str, str], ...]
    origin: str

    def all_of(self, condition):
        return [value for key, value in self.conditions if key == condition]

    def is_(self, condition):
        return bool(self.all_of(condition))

    def scaled(self, scale):
        """With so much of the work, which the last argument says if it is a number."""
        last = self.arguments[-1]
        return replace(self, arguments=(*self.arguments[:-1], f"{int(last) * scale:.0f}")) if last.isdigit() and scale != 1 else self

    @property
    def environment(self):
        return dict(pair.split("=", 1) for pair in self.all_of("env"))

    @property
    def variable(self):
        """The environment variable that says how many threads, or none."""
        return next((name for name, value in self.environment.items() if value == "{n}"), None)

    @property
    def fixed_environment(self):
        return {name: value for name, value in self.environment.items() if value != "{n}"}

    @property
    def quota(self):
        return next(map(float, self.all_of("quota")), None)

    @property
    def changed(self):
        """What was changed after an answer, and when; such a case says less of the doctor."""
        return ", ".join(f"{key} {value}" for key, value in self.conditions if key in ("corrected", "mended"))

    @property
    def may_blame_allocator(self):
        return any(one.term in BLAMING + MEMORY_BLAMING for one in self.right)

    @property
    def words(self):
        """What --only may name it by."""
        return self.name, self.truth, "own" if self.origin == "own" else "public", "memory" if self.is_("memory") else "time", *(["quick"] if self.is_("quick") else [])


def term_in(text, where):
    match = re.fullmatch(r"([a-z]+(?:-[a-z]+)*[+-]?)(?:\(lost<([0-9.]+)\))?", text)
    if not match or match[1] not in CAUSES + MEMORY_CAUSES:
        raise CaseError(f"{where}: '{text}' is no term of a verdict")
    return Term(match[1], float(match[2]) if match[2] else None)


def case_in(line):
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != 6:
        raise CaseError(f"cases.txt: '{line[:40]}...' has {len(fields)} fields, not 6")
    name, command, truth, also, conditions, origin = fields
    source, *arguments = shlex.split(command)
    right = [term_in(text, name) for text in also.split()]
    if truth not in ("mixed", "too-short"):
        right.insert(0, term_in(truth, name))
    pairs = tuple((key, value) for key, _, value in (word.partition(":") for word in conditions.split()))
    if unknown := {key for key, _ in pairs} - CONDITIONS:
        raise CaseError(f"{name}: '{unknown.pop()}' is no condition")
    if not (HERE / "programs" / source).is_file():
        raise CaseError(f"{name}: there is no program {source}")
    return Case(name, HERE / "programs" / source, tuple(arguments), truth, tuple(right), pairs, origin)


def all_cases():
    cases = [case_in(line) for line in (HERE / "cases.txt").read_text().splitlines() if line and not line.startswith("#")]
    if twice := {case.name for case in cases if sum(case.name == other.name for other in cases) > 1}:
        raise CaseError(f"two cases are called {twice.pop()}")
    return cases


def choose(cases, pattern):
    """Those whose name, cause or kind one of the patterns, separated by commas, matches."""
    patterns = pattern.split(",") if pattern else ["*"]
    chosen = [case for case in cases if any(fnmatch.fnmatchcase(word, one) for one in patterns for word in case.words)]
    if not chosen:
        raise CaseError(f"no case matches '{pattern}'; --list names them")
    return chosen


def needed_tool(case):
    """What has to be there to build and run a case, and where it is; none where it is not."""
    if case.quota and not harness.quota_folder():
        return "a control group for a quota", None
    tool = LANGUAGES[case.source.suffix][0]
    return tool, sys.executable if tool == "python3" else shutil.which(tool)


def build(case, folder):
    """The command that runs a case, after its program was compiled into `folder`, if need be."""
    source, language = case.source, case.source.suffix
    if language == ".py":
        return [os.path.realpath(sys.executable), str(source)]
    target = folder / (f"{source.stem}.classes" if language == ".java" else source.stem)
    if not target.exists() or target.stat().st_mtime < max(file.stat().st_mtime for file in (source, *source.parent.glob("*.h*"))):
        compile_to(source, target)
    if language == ".java":
        return [os.path.realpath(shutil.which("java")), *case.all_of("build"), "-cp", str(target), source.stem]
    return [str(target)]


def compile_to(source, target):
    options = {".java": ["-d", target, source], ".rs": ["--edition", "2021", "-O", "-g", source, "-o", target]}.get(
        source.suffix, ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", ROOT, source, "-o", target])
    target.parent.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run([*LANGUAGES[source.suffix], *options], capture_output=True, text=True)
    if ended.returncode:
        raise CaseError(f"{source.name} does not compile: {' '.join(ended.stderr.split())[:400]}")
    if target.is_dir():
        os.utime(target)
