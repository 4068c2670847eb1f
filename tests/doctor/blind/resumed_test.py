#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests of doctor_blind as a command with a stand-in for the doctor: what is asked again, and what is left running: resumed_test.py"""

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

import cases
import matrix

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


class Changed(unittest.TestCase):
    def test_cases_changed_after_an_answer_are_counted_apart(self):
        entries = [{"judgement": "right", "verdict": "none", "truth": "none", "in_vain": False, "changed": changed} for changed in ("", "head corrected")]
        self.assertIn("2 (100%) right", matrix.sentence(entries))
        self.assertTrue(matrix.sentence(entries).endswith("without the 1 that were changed after an answer: 1 right of 1, as the one word named 1"))
        self.assertNotIn("without", matrix.sentence(entries[:1]))

    def test_heads_say_what_was_changed(self):
        changed = {case.name: case.changed for case in cases.all_cases(cases.PUBLIC) if case.changed}
        self.assertEqual({name: text.split()[0] for name, text in changed.items()}, {"artwork_cache": "head", "scattered_survivors": "head", "stream_locale": "program"})


class Resumed(unittest.TestCase):
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

    def start(self, *words):
        command = [sys.executable, "-B", HERE / "run.py", "--build", self.folder, "--only", "python_*", "--budget", "20", "--markdown", self.page, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, *words):
        process = self.start(*words)
        printed, complaint = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, complaint)
        return printed, complaint

    def questions(self):
        file = self.folder / "questions"
        return file.read_text().count("asked") if file.exists() else 0

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
        self.assertEqual((status, complaint), (130, "doctor_blind: interrupted; --resume goes on\n"))
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

    def test_asks_again_what_failed_what_is_named_and_where_the_head_has_changed(self):
        self.doctor(ANSWERS)
        self.finish()
        results = self.folder / "blind" / "results.json"
        stored = json.loads(results.read_text())
        stored["entries"][0]["judgement"], stored["entries"][1]["truth"] = "failed", "serial"
        results.write_text(json.dumps(stored))
        self.finish("--resume", "--again", stored["entries"][2]["case"])
        self.assertEqual(self.questions(), CASES + 3)
        self.finish("--resume")
        self.assertEqual(self.questions(), CASES + 3)

    def test_page_from_two_results_without_a_question(self):
        self.doctor(ANSWERS)
        self.finish("--conditions", "quiet,busy")
        written = self.page.read_text()
        self.page.unlink()
        results = self.folder / "blind" / "results-busy.json"
        self.assertEqual(self.finish("--conditions", "quiet,busy", "--rewrite")[1], "")
        self.assertEqual((self.questions(), self.page.read_text()), (2 * CASES, written))
        stored = json.loads(results.read_text())
        del stored["entries"][0]
        results.write_text(json.dumps(stored))
        self.assertIn(f"results-busy.json: {CASES - 1} of {CASES} cases were asked", self.finish("--conditions", "quiet,busy", "--rewrite")[1])


if __name__ == "__main__":
    unittest.main()
