# SPDX-License-Identifier: MIT
"""Tests of script/suites, on a suite of three small tests: python3 -m unittest discover -s tests/suites -t tests."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from suites import catalog, programs, sources, table
from suites.catalog import Known, Suite

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("FREEHOLD_LIBRARY", str(ROOT / "build/release/libfreehold.so"))

def script(*words, environment=None):
    return subprocess.run([ROOT / "script/suites", *words], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **(environment or {})})


def ended(*failed, text="text"):
    return programs.Outcome(frozenset(failed), text)


class Verdict(unittest.TestCase):
    SUITE = Suite("one", "one", "malloc", ("*.c",), known=(Known("test", "odd", "it is odd"),))
    TEST = table.Test(SUITE, "test", pathlib.Path("test.c"), pathlib.Path("."), ())

    def word(self, theirs, ours):
        return table.verdict(self.TEST, theirs, ours)[0]

    def test_Passes_Pass(self):
        self.assertEqual(self.word(ended(), ended()), "pass")
        self.assertEqual(self.word(ended("exit code 1"), ended()), "pass")

    def test_FailsUnderFreeholdAlone_Fail(self):
        self.assertEqual(self.word(ended(), ended("exit code 1")), "FAIL")

    def test_FailsUnderBoth_Both(self):
        self.assertEqual(self.word(ended("exit code 1"), ended("exit code 2")), "both")

    def test_CrashesOrHangsUnderFreeholdAlone_FailThoughTheOtherFailsToo(self):
        self.assertEqual(self.word(ended("exit code 1"), ended("ended by SIGSEGV")), "FAIL")
        self.assertEqual(self.word(ended("exit code 1"), ended("time")), "FAIL")

    def test_KnownCheck_KnownWithItsReason(self):
        self.assertEqual(table.verdict(self.TEST, ended(), ended("odd")), ("known", "it is odd"))

    def test_AnotherCheckBesideTheKnownOne_Fail(self):
        self.assertEqual(self.word(ended(), ended("odd", "new")), "FAIL")

    def test_CheckThatFailsUnderBoth_Both(self):
        self.assertEqual(self.word(ended("same", "theirs"), ended("same")), "both")
        self.assertEqual(self.word(ended("same"), ended("same", "new")), "FAIL")


class Catalog(unittest.TestCase):
    def test_EverySuite_HasItsHeaders(self):
        for suite in catalog.SUITES:
            self.assertTrue((catalog.HERE / suite.name).is_dir(), suite.name)

    def test_EveryPattern_IsOne(self):
        for suite in catalog.SUITES:
            for pattern, reason in suite.left_out:
                re.compile(pattern)
                self.assertTrue(reason)

    def test_KnownDifferences_AreOfTestsThatRun(self):
        for suite in catalog.SUITES:
            for known in suite.known:
                self.assertIsNone(suite.why_left_out(known.test), known.test)
                self.assertTrue(known.reason)

class Refusals(unittest.TestCase):
    def refused(self, *words):
        with tempfile.TemporaryDirectory() as cache:
            done = script("--cache", cache, "--offline", *words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_BadInput_OneLineAndTheWayOut(self):
        self.assertIn("there are glibc, jemalloc", self.refused("dlmalloc"))
        self.assertIn("--help", self.refused("--nothing"))
        self.assertIn("--timeout", self.refused("--timeout", "0"))
        self.assertIn("no such suite", self.refused("--sources", "nothing=/tmp"))
        self.assertIn("root of its sources", self.refused("--sources", "glibc=/nowhere"))
        self.assertIn("build it", self.refused("--library", "/nowhere.so"))
        self.assertIn("is not Freehold's", self.refused("--library", "/bin/sh"))
        self.assertIn("--cache", self.refused("--cache", "/dev/null"))

    def test_NothingToBeHad_Skipped(self):
        with tempfile.TemporaryDirectory() as cache:
            done = script("--cache", cache, "--offline", "--library", LIBRARY, "glibc", "snmalloc")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(done.stdout.splitlines()), 3)
            self.assertIn("skipped", done.stdout)
            self.assertEqual(script("--cache", cache, "--offline", "--library", LIBRARY, "--ctest", "glibc").returncode, 77)


if __name__ == "__main__":
    unittest.main()
