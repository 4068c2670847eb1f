# SPDX-License-Identifier: MIT
"""Tests of script/suites, on a suite of three small tests: python3 -m unittest discover -s tests/suites -t tests."""

import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

from suites import catalog, programs, sources, table
from suites.catalog import Known, Suite

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("FREEHOLD_LIBRARY", str(ROOT / "build/release/libfreehold.so"))

GOOD = "#include <stdlib.h>\nstatic int do_test(void) { free(malloc(1)); return 0; }\n#include <support/test-driver.c>\n"
# Fails if Freehold's malloc is in use.
BAD = """#include <dlfcn.h>
#include <support/check.h>
static int do_test(void) { TEST_VERIFY(dlsym(RTLD_DEFAULT, "freehold_is_active") == NULL); return 0; }
#include <support/test-driver.c>
"""


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


class Ends(unittest.TestCase):
    def test_WantedSignal_Pass(self):
        self.assertTrue(programs.outcome(-6, "", 6, False).passed)
        self.assertEqual(programs.outcome(0, "", 6, False).failed, {"exit code 0"})

    def test_NamedChecks_TheirNames(self):
        self.assertEqual(programs.outcome(1, "x\n  FAILED: a-b: f.c:1\nFAILED: c: f.c:2\n", 0, True).failed, {"a-b", "c"})

    def test_CrashAfterAFailedCheck_TheCrash(self):
        self.assertEqual(programs.outcome(-11, "FAILED: a: f.c:1\n", 0, True).failed, {"ended by SIGSEGV"})

    def test_NotPossibleHere_Skipped(self):
        self.assertTrue(programs.outcome(77, "", 0, False).skipped)


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

    def test_LastError_TheClientsOwnLine(self):
        self.assertEqual(sources.last_error("Reading\nE: Unable to find a source package for x\nHint: y\n"), "E: Unable to find a source package for x")
        self.assertEqual(sources.last_error("error: failed to sync\n\nCaused by:\n  could not connect\n"), "could not connect")
        self.assertEqual(sources.last_error(""), "no reason given")

    def test_Unpack_TheFolderOfTheTestsOnly(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for name in ("one-1.0/malloc/a.c", "one-1.0/malloc/deep/b.h", "one-1.0/other/c.c"):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(name)
            with tarfile.open(folder / "one_1.0.orig.tar.xz", "w:xz") as archive:
                archive.add(folder / "one-1.0", "one-1.0")
            cache = sources.Cache(folder)
            cache.unpack(Verdict.SUITE, folder / "one_1.0.orig.tar.xz")
            there = sorted(file.relative_to(folder / "sources/one").as_posix() for file in (folder / "sources/one").rglob("*") if file.is_file())
            self.assertEqual(there, [".complete", "malloc/a.c", "malloc/deep/b.h"])
            self.assertEqual(cache.version(Verdict.SUITE), "1.0")


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


class Whole(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sources = pathlib.Path(folder.name, "sources")
        (self.sources / "malloc").mkdir(parents=True)
        self.cache = pathlib.Path(folder.name, "cache")
        self.add("tst-good", GOOD)
        self.add("tst-interpose-x", "#error not to be built")

    def add(self, name, text):
        (self.sources / "malloc" / f"{name}.c").write_text(text)

    def run_script(self, *words):
        return script("--cache", str(self.cache), "--sources", f"glibc={self.sources}", "--library", LIBRARY, "glibc", *words)

    def rows(self, done):
        return {words[1]: words[2:4] for words in (line.split() for line in done.stdout.splitlines()) if len(words) > 3 and words[0] == "glibc" and not words[1].endswith(":")}

    def test_AllPass_Zero(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.rows(done), {"tst-good": ["pass", "pass"]})
        self.assertIn("1 pass; 1 left out", done.stdout)

    def test_OneFailsUnderFreeholdAlone_One(self):
        self.add("tst-bad", BAD)
        done = self.run_script()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.rows(done), {"tst-good": ["pass", "pass"], "tst-bad": ["pass", "FAIL"]})
        self.assertEqual(self.run_script("--only", "tst-good").returncode, 0)

    def test_OneCannotBeBuilt_OneAndTheCompilersWord(self):
        self.add("tst-broken", "int do_test(void) { return nothing; }\n")
        done = self.run_script("--only", "tst-broken")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not built", done.stdout)
        self.assertIn("nothing", done.stdout)

    def test_List_NamesAllAndRunsNothing(self):
        done = self.run_script("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split(None, 1) for line in done.stdout.splitlines()]
        self.assertEqual([name for name, _ in lines], ["glibc/tst-good", "glibc/tst-interpose-x"])
        self.assertEqual(lines[0][1], "run")
        self.assertIn("left out: brings a malloc of its own", lines[1][1])
        self.assertFalse((self.cache / "programs").exists())

    def test_OnlyNothing_Refused(self):
        self.assertEqual(self.run_script("--only", "nothing").returncode, 2)
        self.assertEqual(self.run_script("--only", "interpose").returncode, 2)


if __name__ == "__main__":
    unittest.main()
