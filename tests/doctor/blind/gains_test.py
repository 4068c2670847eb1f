#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of doctor_blind --gains on made answers, and of the command as a whole with a stand-in for the doctor: gains_test.py"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gains
import matrix

HERE = Path(__file__).resolve().parent


def fix(low, value, high, best=True, variant=0, failed=None):
    gain = {"low": low, "value": value, "high": high} if value else None
    return {"text": "Freehold", "gain": gain, "best": best, "failed": failed, "variant": variant}


def entry(program, predicted, ratios):
    return {"program": program, "verdict": "page-faults", "load": 1, **gains.compared(fix(*predicted), ratios)}


class Compared(unittest.TestCase):
    def test_median_between_the_limits_is_inside(self):
        told = entry("sort", (1.1, 1.3, 1.5), [0.9, 1.1, 1.2, 1.3, 1.4, 9.0])
        self.assertTrue(told["inside"])
        self.assertEqual(told["measured"], [1.1, 1.25, 1.4])
        self.assertIn("1.30 (1.10 to 1.50) | 1.25 (1.10 to 1.40) | inside", gains.row(told))

    def test_median_above_or_below_the_limits_is_outside(self):
        for ratios in ([1.6] * 8, [1.0] * 8):
            with self.subTest(ratios=ratios):
                told = entry("sort", (1.1, 1.3, 1.5), ratios)
                self.assertFalse(told["inside"])
                self.assertIn("**outside**", gains.row(told))

    def test_single_pair_is_its_own_limits(self):
        told = entry("sort", (1.1, 1.3, 1.5), [1.2])
        self.assertEqual((told["measured"], told["inside"]), ([1.2, 1.2, 1.2], True))


class PredictedFix(unittest.TestCase):
    experiment = {"variants": [{"treatment": "freehold"}, {"treatment": "arenas"}]}

    def test_advised_one_goes_before_freehold(self):
        report = {"fixes": [fix(1, 1.2, 2, best=False), fix(1, 1.1, 2, variant=1)], "experiment": self.experiment}
        self.assertEqual(gains.predicted_fix(report)["variant"], 1)

    def test_without_advice_it_is_freehold(self):
        report = {"fixes": [fix(1, 1.9, 2, best=False, variant=1), fix(1, 1.2, 2, best=False)], "experiment": self.experiment}
        self.assertEqual(gains.predicted_fix(report)["variant"], 0)

    def test_none_where_nothing_was_timed(self):
        report = {"fixes": [fix(0, None, 0), fix(1, 1.2, 2, failed="it crashed")], "experiment": self.experiment}
        self.assertIsNone(gains.predicted_fix(report))


class Table(unittest.TestCase):
    results = {"date": "2026-01-02", "machine": "a CPU", "entries": [
        entry("git", (1, 1.1, 1.2), [1.1]), entry("sort", (1, 1.1, 1.2), [2.0]), {"program": "xz", "verdict": "none", "load": 7, "left_out": "no | treatment"}]}

    def test_counts_those_inside_and_names_those_without_a_gain(self):
        self.assertEqual(gains.sentence(self.results["entries"]), "1 of 2 measured gains lie within the predicted limits; without both: xz.")

    def test_section_replaces_the_former_one_between_its_marks(self):
        section = gains.as_markdown("command", self.results)
        page = matrix.put_into("before\n" + matrix.marks("gains")[0] + "\nformer\n" + matrix.marks("gains")[1] + "\nafter\n", "gains", section)
        self.assertEqual((page.startswith("before\n"), page.endswith("\nafter\n"), "former" in page), (True, True, False))
        self.assertIn("2026-01-02 on a CPU", page)
        self.assertIn("| xz | none | no / treatment | | | | 7 |", page)


@unittest.skipUnless(shutil.which("xz"), "no xz")
class Command(unittest.TestCase):
    """The stand-in doctor predicts that xz, which has little to do here, becomes 1000 times as fast."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        doctor = self.folder / "bin" / "freehold"
        doctor.parent.mkdir()
        report = {"verdict": {"cause": "none"}, "fixes": [fix(900, 1000, 1100)], "experiment": {"variants": [{"treatment": "freehold", "environment": {}, "preload": []}]}}
        (self.folder / "report").write_text(json.dumps(report))
        doctor.write_text(f'#!/bin/sh\necho asked >>{self.folder}/questions\ncp {self.folder}/report "$3"\n')
        doctor.chmod(0o755)
        self.page = self.folder / "page.md"

    def run_it(self, *words):
        return subprocess.run([sys.executable, "-B", HERE / "run.py", "--gains", "--only", "xz", "--build", self.folder, "--markdown", self.page,
                               *words], capture_output=True, text=True, timeout=100)

    def questions(self):
        return (self.folder / "questions").read_text().count("asked")

    def test_resumed_and_rewritten_it_asks_once(self):
        gone = self.run_it("--rewrite")
        self.assertEqual((gone.returncode, "has no answers" in gone.stderr), (2, True))
        for more in ([], ["--resume"], ["--rewrite"]):
            self.page.unlink(missing_ok=True)
            ended = self.run_it(*more)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertEqual(self.questions(), 1)
            self.assertIn("**outside**", self.page.read_text())
        other = self.run_it("--rewrite", "--budget", "7")
        self.assertEqual((other.returncode, "a budget of 25 s" in other.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
