#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of doctor_corpus with a stand-in for the doctor: what an answer is worth, what is asked again, and what is left running: corpus_test.py"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import ask
import cases
import gains
import results

HERE = Path(__file__).resolve().parent
CASES = 4  # python_*: nothing has to be compiled
ANSWER = {"verdict": {"cause": "own-lock", "blames_allocator": False, "headline": "It waits."}, "fixes": []}
ANSWERS = 'echo asked >>"$here/questions"; cp "$here/answer" "$3"\n'
HANGS_AT_THE_THIRD = 'test "$(wc -l <"$here/questions")" -lt 3 || { echo $$ >"$here/pid"; exec sleep 100; }\n'


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"after a minute: {what}")


def verdict(cause, blames=False, lost=0.5, share=0.5, headline=""):
    return {"cause": cause, "blames_allocator": blames, "lost": {"value": lost}, "allocator_share": {"value": share}, "headline": headline}


class Judged(unittest.TestCase):
    def judged(self, line, *answer, **known):
        return ask.judge(cases.case_in(line), *answer, **known)

    def test_cause_other_terms_and_open_answers(self):
        line = "x | compute.c {n} | serial | own-lock mixed+ none(lost<0.25) | unsaid:of.the.scaling | own"
        for answer, worth in ((verdict("serial"), "right"), (verdict("own-lock"), "right"), (verdict("mixed", True), "right"), (verdict("mixed"), "wrong"),
                              (verdict("none"), "wrong"), (verdict("none", lost=0.2), "right"), (verdict("undecided"), "undecided"), (verdict("page-faults"), "wrong"),
                              (verdict("serial", headline="half of the scaling"), "wrong")):
            with self.subTest(answer=answer):
                self.assertEqual(self.judged(line, answer), (worth, False))

    def test_allocator_blamed_in_vain_is_wrong(self):
        self.assertEqual(self.judged("x | compute.c | serial | | | own", verdict("page-faults", True)), ("wrong", True))

    def test_machine_may_bear_a_cause_and_a_share_is_measured(self):
        self.assertEqual(self.judged("x | compute.c | own-sharing | | | own", verdict("none"), is_borne=True)[0], "right")
        self.assertEqual(self.judged("x | compute.c | own-sharing | | | own", verdict("none"))[0], "wrong")
        line = "x | mixed.cpp {n} parts 1 | mixed | mixed+ | parts | own"
        self.assertEqual([self.judged(line, verdict("mixed", True, share=found), share=0.5)[0] for found in (0.4, 0.6, 0.75)], ["right", "right", "wrong"])

    def test_undecided_is_right_of_a_program_that_is_too_short(self):
        self.assertEqual(self.judged("x | compute.c | too-short | undecided none | | own", verdict("undecided"))[0], "right")

    def test_scale_is_of_the_last_argument_that_is_a_number(self):
        for command, arguments in (("compute.c {n} 600", ("{n}", "180")), ("memory_reasons.cpp leak", ("leak",))):
            self.assertEqual(cases.case_in(f"x | {command} | serial | | | own").scaled(0.3).arguments, arguments)

    def test_list_is_refused_in_one_line(self):
        for line in ("x | compute.c | serial", "x | gone.c | serial | | | own", "x | compute.c | slow | | | own", "x | compute.c | serial | | soon | own"):
            with self.subTest(line=line), self.assertRaises(cases.CaseError):
                cases.case_in(line)

    def test_every_cause_has_a_case_and_every_program_is_asked_about(self):
        every = cases.all_cases()
        self.assertEqual(set(cases.CAUSES + cases.MEMORY_CAUSES) - {case.truth for case in every} - {"undecided", "mixed+", "mixed-"}, set())
        self.assertEqual({path.name for path in (HERE / "programs").iterdir() if not path.suffix.startswith(".h")}, {case.source.name for case in every})

    def test_cases_changed_after_an_answer_are_counted_apart(self):
        entries = [{"judgement": "right", "verdict": "none", "truth": "none", "in_vain": False, "changed": changed} for changed in ("", "mended")]
        self.assertTrue(results.sentence(entries).startswith("2 (100%) right"))
        self.assertTrue(results.sentence(entries).endswith("without the 1 that were changed after an answer: 1 right of 1"))
        self.assertNotIn("without", results.sentence(entries[:1]))


def fix(low, value, high, best=True, variant=0, failed=None):
    return {"text": "Freehold", "gain": value and {"low": low, "value": value, "high": high}, "best": best, "failed": failed, "variant": variant}


class Gains(unittest.TestCase):
    experiment = {"variants": [{"treatment": "freehold", "environment": {}, "preload": []}, {"treatment": "arenas"}]}

    def test_median_is_inside_or_outside_of_the_limits(self):
        for ratios, measured, inside in (([0.9, 1.1, 1.2, 1.3, 1.4, 9.0], [1.1, 1.25, 1.4], True), ([1.6] * 8, [1.6] * 3, False), ([1.0] * 8, [1.0] * 3, False),
                                         ([1.2], [1.2] * 3, True)):
            with self.subTest(ratios=ratios):
                told = {"program": "sort", "verdict": "none", "load": 1, **gains.compared(fix(1.1, 1.3, 1.5), ratios)}
                self.assertEqual((told["measured"], told["inside"], "| inside |" in gains.row(told)), (measured, inside, inside))

    def test_advised_treatment_goes_before_freehold_and_none_was_timed(self):
        for fixes, variant in (([fix(1, 1.2, 2, best=False), fix(1, 1.1, 2, variant=1)], 1), ([fix(1, 1.9, 2, best=False, variant=1), fix(1, 1.2, 2, best=False)], 0)):
            self.assertEqual(gains.predicted_fix({"fixes": fixes, "experiment": self.experiment})["variant"], variant)
        self.assertIsNone(gains.predicted_fix({"fixes": [fix(0, None, 0), fix(1, 1.2, 2, failed="it crashed")], "experiment": self.experiment}))


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "bin").mkdir()
        (self.folder / "answer").write_text(json.dumps(ANSWER))
        self.page = self.folder / "page.md"

    def doctor(self, does):
        file = self.folder / "bin" / "freehold"
        file.write_text(f"#!/bin/sh\nhere={self.folder}\n{does}")
        file.chmod(0o755)

    def start(self, *words, only="python_*", budget="20"):
        command = [sys.executable, "-B", HERE / "run.py", "--build", self.folder, "--only", only, "--budget", budget, "--markdown", self.page, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, *words, status=0, **more):
        process = self.start(*words, **more)
        printed, complaint = process.communicate(timeout=200)
        self.assertEqual(process.returncode, status, printed + complaint)
        return printed, complaint

    def questions(self):
        file = self.folder / "questions"
        return file.read_text().count("asked") if file.exists() else 0

    def stored(self, change):
        file = self.folder / "corpus" / "results-quiet.json"
        stored = json.loads(file.read_text())
        change(stored["entries"])
        file.write_text(json.dumps(stored))

    def end_at_the_third_question(self, how):
        self.doctor(ANSWERS + HANGS_AT_THE_THIRD)
        process = self.start("--conditions", "busy")
        pid = self.folder / "pid"
        wait_until(lambda: pid.exists() and pid.read_text().strip(), "no third question")
        children = [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        self.assertEqual(len(children), 3)  # the doctor and two neighbours
        process.send_signal(how)
        _, complaint = process.communicate(timeout=100)
        doctor = int(pid.read_text())
        return process.returncode, complaint, doctor, [child for child in children if child != doctor]

    def test_ended_by_a_signal_it_ends_the_doctor_and_the_neighbours_and_goes_on_later(self):
        status, complaint, doctor, neighbours = self.end_at_the_third_question(signal.SIGTERM)
        self.assertEqual((status, complaint), (130, "doctor_corpus: interrupted; --resume goes on\n"))
        self.assertEqual([is_running(pid) for pid in (doctor, *neighbours)], [False] * 3)
        self.doctor(ANSWERS)
        printed, _ = self.finish("--conditions", "busy", "--resume")
        self.assertEqual(self.questions(), 3 + 2)
        self.assertIn(f"[3/{CASES}] ", printed)
        self.assertNotIn(f"[2/{CASES}] ", printed)

    def test_killed_it_leaves_no_busy_neighbour(self):
        _, _, doctor, neighbours = self.end_at_the_third_question(signal.SIGKILL)
        os.kill(doctor, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, neighbours)), "the neighbours run")

    def test_asks_again_what_failed_what_is_named_and_where_the_list_has_changed(self):
        self.doctor(ANSWERS)
        self.finish()

        def change(entries):
            entries[0]["judgement"], entries[1]["truth"] = "failed", "serial"
            self.third = entries[2]["case"]
        self.stored(change)
        self.finish("--resume", "--again", self.third)
        self.assertEqual(self.questions(), CASES + 3)
        self.finish("--resume")
        self.assertEqual(self.questions(), CASES + 3)

    def test_page_from_two_results_without_a_question(self):
        self.doctor(ANSWERS)
        self.finish("--conditions", "quiet,busy")
        written = self.page.read_text()
        self.page.write_text(f"before\n{written}after\n")
        self.assertEqual(self.finish("--conditions", "quiet,busy", "--rewrite")[1], "")
        self.assertEqual((self.questions(), self.page.read_text()), (2 * CASES, f"before\n{written}after\n"))
        self.assertRegex(written, "As named in all cases: .*own-lock 2")
        self.stored(lambda entries: entries.pop())
        self.assertIn(f"results-quiet.json: {CASES - 1} of {CASES} cases were asked", self.finish("--conditions", "quiet,busy", "--rewrite")[1])

    def test_gate_fails_by_a_wrong_answer_and_by_too_few_that_are_right(self):
        self.doctor(ANSWERS)
        self.finish("--gate", status=1, only="python_hash")  # own-lock of a program that scales
        self.finish("--gate", only="python_compute")
        (self.folder / "answer").write_text(json.dumps(ANSWER).replace("own-lock", "undecided"))
        self.finish("--gate", "--tries", "3", only="python_compute")
        self.assertEqual(self.questions(), 1 + 1 + 3)
        self.finish("--gate", "--right-from", "0.5", status=1, only="python_compute")
        (self.folder / "answer").write_text(json.dumps({**ANSWER, "verdict": {**ANSWER["verdict"], "cause": "undecided", "doubt": "busy-machine"}}))
        self.finish("--gate", "--right-from", "0.5", status=77, only="python_compute")

    @unittest.skipUnless(shutil.which("xz"), "no xz")
    def test_gains_resumed_and_rewritten_it_asks_once(self):
        report = {"verdict": {"cause": "none"}, "fixes": [fix(900, 1000, 1100)], "experiment": Gains.experiment}  # xz has little to do here
        (self.folder / "answer").write_text(json.dumps(report))
        self.doctor(ANSWERS)
        gone = self.finish("--gains", "--rewrite", only="xz", status=2)
        self.assertIn("has no answers", gone[1])
        for more in ([], ["--resume"], ["--rewrite"]):
            self.page.unlink(missing_ok=True)
            self.assertEqual(self.finish("--gains", *more, only="xz")[1], "")
            self.assertEqual(self.questions(), 1)
            self.assertIn("**outside**", self.page.read_text())
        self.assertIn("a budget of 20 s", self.finish("--gains", "--rewrite", budget="7", only="xz", status=2)[1])


if __name__ == "__main__":
    unittest.main()
