# SPDX-License-Identifier: MIT
"""The verdict on each test, and what is printed."""
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .catalog import Suite

WORDS = ("pass", "FAIL", "known", "both", "skip", "not built")
MEANING = {
    "pass": "pass",
    "FAIL": "fail under Freehold alone",
    "known": "fail under Freehold alone, for a known reason",
    "both": "fail under both",
    "skip": "not possible here",
    "not built": "not built",
}


@dataclass(frozen=True)
class Test:
    suite: Suite
    name: str
    file: Path
    sources: Path
    arguments: tuple

    @property
    def full_name(self):
        return f"{self.suite.name}/{self.name}"

    @property
    def program(self):
        """Parts of a test share their program."""
        return self.name.split(" ")[0]

    @property
    def why_left_out(self):
        return self.suite.why_left_out(self.name)


@dataclass(frozen=True)
class Row:
    test: Test
    theirs: str
    ours: str
    static: str
    note: str


def short(outcome):
    return "pass" if outcome.passed else "skip" if outcome.skipped else "fail"


def verdict(test, theirs, ours):
    """(word, note). A test that fails under both says nothing of Freehold, unless it crashes or hangs under Freehold alone."""
    if ours.passed:
        return "pass", f"glibc: {theirs.text}" if short(theirs) == "fail" else ""
    if ours.skipped:
        return "skip", ours.text
    alone = ours.failed - theirs.failed
    if not theirs.passed:
        alone = {check for check in alone if not check.startswith("exit code")}
    if not alone:
        return "both", ours.text
    reasons = {check: test.suite.why_known(test.name, check) for check in sorted(alone)}
    if all(reasons.values()):
        return "known", "; ".join(dict.fromkeys(reasons.values()))
    return "FAIL", ours.text


def row(test, theirs, ours, ours_static=None, static=None):
    word, note = verdict(test, theirs, ours)
    static_word = ""
    if ours_static is not None:
        static_word, static_note = verdict(test, theirs, ours_static)
        if static_word == "FAIL":
            note = f"{note}; static: {static_note}".removeprefix("; ")
    elif static is not None:
        static_word = "-"  # it does not link: the C library has a part of it as a shared library only
    return Row(test, short(theirs), word, static_word, note)


def not_built(test, error):
    return Row(test, "", "not built", "", str(error))


class View:
    """Rows as they come; on a terminal a line below them that says what runs."""

    def __init__(self, options):
        self.static = options.static
        self.versions = {}
        self.rows = []
        self.terminal = sys.stderr.isatty()

    def progress(self, text):
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{text[:110]}")
            sys.stderr.flush()

    def line(self, text):
        self.progress("")
        print(text, flush=True)

    def missing(self, suite, reason):
        self.line(f"{suite.name}: not to be had ({suite.source}): {reason}")

    def found(self, suite, version):
        self.versions[suite.name] = version

    def columns(self, suite, test, theirs, ours, static, note):
        middle = f"{static:9} " if self.static else ""
        self.line(f"{suite:10} {test:36} {theirs:6} {ours:9} {middle}{note}".rstrip())

    def head(self):
        self.columns("suite", "test", "glibc", "freehold", "static", "note")

    def row(self, row):
        self.rows.append(row)
        self.columns(row.test.suite.name, row.test.name, row.theirs, row.ours, row.static, row.note)

    def list(self, tests):
        for test in tests:
            self.line(f"{test.full_name:48} {'left out: ' + test.why_left_out if test.why_left_out else 'run'}")

    def summary(self, tests):
        """Prints one line for each suite; the exit code."""
        self.line("")
        for name, version in self.versions.items():
            rows = [row for row in self.rows if row.test.suite.name == name]
            if not rows:
                continue
            counts = Counter(row.ours for row in rows)
            left_out = sum(1 for test in tests if test.suite.name == name and test.why_left_out)
            parts = [f"{counts[word]} {MEANING[word]}" for word in WORDS if counts[word]]
            self.line(f"{name} {version}: {', '.join(parts)}; {left_out} left out (--list says why)")
        bad = [row for row in self.rows if row.ours in ("FAIL", "not built") or row.static == "FAIL"]
        return 1 if bad else 0
