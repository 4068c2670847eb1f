#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The harness of the blind cases, with a doctor that answers what the test tells it: heads, judgements, matrix, resumption, bad arguments."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import asking
import byhand
import cases
import matrix

RUN = Path(__file__).resolve().parent / "run.py"

# Stands for bin/freehold: writes a report whose cause is the text of the file `answer`, and counts how often it was asked.
DOCTOR = """#!{python}
import json, sys
from pathlib import Path
folder = Path(__file__).parent
words = sys.argv
(folder / "asked").open("a").write(" ".join(words[1:]) + chr(10))
cause = (folder / "answer").read_text()
if cause == "fails":
    print("cannot be examined", file=sys.stderr)
    sys.exit(2)
estimate = dict(low=0.4, value=0.5, high=0.6)
verdict = dict(cause=cause, blames_allocator=cause in ("allocator-lock", "page-faults"), headline="A headline.", lost=estimate, noisy=False)
Path(words[words.index("--json") + 1]).write_text(json.dumps(dict(verdict=verdict, fixes=[dict(text="jemalloc", gain=estimate, failed=False)])))
"""


def verdict(cause, blames=False, lost=0.5, headline="A headline."):
    return {"cause": cause, "blames_allocator": blames, "lost": {"value": lost}, "headline": headline}


def case_of(right, unsaid=None, truth="own-lock"):
    return cases.Case("name", Path("x.c"), ("{n}",), truth, tuple(cases.parse_condition(text, "x") for text in right.split()), unsaid=unsaid)


class Heads(unittest.TestCase):
    def test_Heads_AllOfThem_ParsedAndEnough(self):
        found = cases.all_cases()
        self.assertGreaterEqual(len(found), 66)
        self.assertEqual({case.language for case in found}, {"C", "C++", "Python", "Java", "Rust"})
        for case in found:
            # A cause that is the truth counts as right; a mix may be seen from either side.
            terms = {condition.term.rstrip("+-") for condition in case.right}
            self.assertIn({"too-short": "undecided"}.get(case.truth, case.truth), terms, case.name)

    def test_Heads_EachFile_SaysWhatAndWhy(self):
        for source in {case.source for case in cases.all_cases()}:
            head = source.read_text()[:3000]
            self.assertIn(" Does: ", head, source.name)
            self.assertIn(" Why:  ", head, source.name)

    def test_Head_UnknownTerm_RefusedWithFileAndCase(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "bad.c"
            source.write_text("// Case bad: 1\n//   Truth: own-lock\n//   Right: own-luck\n")
            with self.assertRaisesRegex(cases.CaseError, "bad.c, case bad: 'own-luck'"):
                cases.all_cases(Path(folder))


class Judgements(unittest.TestCase):
    def test_Judge_RightTerm_Right(self):
        self.assertEqual(asking.judge(case_of("own-lock serial"), verdict("serial")), ("right", False))

    def test_Judge_AllocatorBlamedForOwnLock_WrongAndInVain(self):
        self.assertEqual(asking.judge(case_of("own-lock"), verdict("allocator-lock", True)), ("wrong", True))

    def test_Judge_MixedWithAllocatorWhereOnlyTheOtherIsRight_WrongAndInVain(self):
        self.assertEqual(asking.judge(case_of("own-lock mixed-"), verdict("mixed", True)), ("wrong", True))
        self.assertEqual(asking.judge(case_of("own-lock mixed-"), verdict("mixed", False)), ("right", False))

    def test_Judge_OtherCauseOfTheAllocators_WrongButNotInVain(self):
        self.assertEqual(asking.judge(case_of("page-faults", truth="page-faults"), verdict("allocator-lock", True)), ("wrong", False))

    def test_Judge_Undecided_NeverWrongUnlessItBlames(self):
        self.assertEqual(asking.judge(case_of("own-lock"), verdict("undecided")), ("undecided", False))
        self.assertEqual(asking.judge(case_of("own-lock"), verdict("undecided", True)), ("wrong", True))

    def test_Judge_ScalesOnlyIfItsOwnTrialsDid_ByWhatWasLost(self):
        case = case_of("memory-bandwidth none(lost<0.25)", truth="memory-bandwidth")
        self.assertEqual(asking.judge(case, verdict("none", lost=0.1))[0], "right")
        self.assertEqual(asking.judge(case, verdict("none", lost=0.4))[0], "wrong")

    def test_Judge_NoneWhereTheMachineBearsIt_Right(self):
        case = case_of("allocator-false-sharing", truth="allocator-false-sharing")
        self.assertEqual(asking.judge(case, verdict("none", lost=0.01), is_borne=True), ("right", False))
        self.assertEqual(asking.judge(case, verdict("none", lost=0.01), is_borne=False), ("wrong", False))
        self.assertEqual(asking.judge(case, verdict("own-lock"), is_borne=True), ("wrong", False))

    def test_SpeedupByHand_OnlyWhereAMachineMayBearTheCause_LeastOfRuns(self):
        times = {1: iter([3.0, 2.0, 4.0]), 2: iter([1.5, 1.0, 9.0])}
        run_once, byhand.run_once = byhand.run_once, lambda case, command, threads: (next(times[threads]), 0, 0, 0)
        self.addCleanup(setattr, byhand, "run_once", run_once)
        self.assertEqual(asking.speedup_by_hand(case_of("own-sharing", truth="own-sharing"), ["x"]), 2.0)
        self.assertIsNone(asking.speedup_by_hand(case_of("own-lock"), ["x"]))

    def test_Judge_ForbiddenWords_WrongWhateverTheTerm(self):
        self.assertEqual(asking.judge(case_of("serial", unsaid="of the scaling"), verdict("serial", headline="all of the scaling"))[0], "wrong")


class Commands(unittest.TestCase):
    def test_Command_ThreadsInArgumentVariableOrNowhere_AsDocumented(self):
        def words(arguments, environment=None):
            case = cases.Case("name", Path("x.c"), arguments, "none", (), environment or {})
            return " ".join(asking.command_for(case, "freehold", ["./x"], 7, "r"))
        self.assertIn("--threads 1,2 -- ./x {n} 5", words(("{n}", "5")))
        self.assertIn("--threads 1,2 --env COUNT -- ./x 5", words(("5",), {"COUNT": "{n}"}))
        self.assertIn("--budget 7s -- ./x 5", words(("5",), {"OTHER": "1"}))


class Matrix(unittest.TestCase):
    entries = [{"case": "a", "truth": "own-lock", "verdict": "own-lock", "judgement": "right", "in_vain": False, "headline": "h"},
               {"case": "b", "truth": "own-lock", "verdict": "mixed+", "judgement": "wrong", "in_vain": True, "headline": "x | y"}]

    def test_Matrix_TwoEntries_CountedAndShown(self):
        self.assertEqual(matrix.confusion(self.entries), {"own-lock": {"own-lock": 1, "mixed+": 1}})
        self.assertIn("1 (50%) right, 0 (0%) undecided, 1 (50%) wrong of 2 cases; the allocator blamed in vain: 1", matrix.as_text(self.entries))

    def test_Matrix_BorneByTheMachine_AColumnOfItsOwn(self):
        entries = [{**self.entries[0], "truth": "own-sharing", "verdict": "none", "borne": True}, {**self.entries[0], "verdict": "none", "borne": False}]
        self.assertEqual(matrix.confusion(entries), {"own-sharing": {matrix.BORNE: 1}, "own-lock": {"none": 1}})

    def test_Markdown_PutTwice_OneSection(self):
        section = matrix.as_markdown(self.entries, {"budget_s": 7, "neighbours": 1})
        self.assertIn("| own-lock | 1 | 1 |", section)
        self.assertIn("| b | own-lock | mixed+ | x / y |", section)
        page = matrix.put_into(matrix.put_into("# Page\n\nText.\n", section) + "\nAfter.\n", section)
        self.assertEqual(page.count(matrix.BEGIN), 1)
        self.assertTrue(page.startswith("# Page\n\nText.\n") and page.endswith("After.\n"))


class WholeRuns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bin = Path(self.folder.name) / "bin"
        self.bin.mkdir()
        (self.bin / "freehold").write_text(DOCTOR.format(python=sys.executable))
        (self.bin / "freehold").chmod(0o755)

    def run_harness(self, *words, answer="serial"):
        (self.bin / "answer").write_text(answer)
        return subprocess.run([sys.executable, "-B", str(RUN), "--build", self.folder.name, *words], capture_output=True, text=True, timeout=120)

    def asked(self):
        return len((self.bin / "asked").read_text().splitlines())

    def test_Run_Interrupted_ResumeAsksTheRestOnly(self):
        self.run_harness("--only", "python_compute")
        ended = self.run_harness("--only", "python_*", "--resume", "--neighbours", "0")
        self.assertEqual((ended.returncode, self.asked()), (0, 4), ended.stderr)
        stored = json.loads((Path(self.folder.name) / "blind" / "results.json").read_text())
        self.assertEqual((stored["counts"]["cases"], stored["counts"]["right"], stored["counts"]["wrong"]), (4, 2, 2))

    def test_Run_GateWithVerdictInVain_ExitsOne(self):
        self.assertEqual(self.run_harness("--only", "python_compute", "--gate", answer="allocator-lock").returncode, 1)
        self.assertEqual(self.run_harness("--only", "python_compute", "--gate", answer="undecided").returncode, 0)
        self.assertEqual(self.run_harness("--only", "python_compute", "--gate", answer="fails").returncode, 1)

    def test_Run_ResumeWithOtherSettings_Refused(self):
        self.run_harness("--only", "python_compute", "--budget", "5")
        ended = self.run_harness("--only", "python_compute", "--budget", "6", "--resume")
        self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), ended.stderr)

    def test_Run_BadArguments_OneLineAndTwo(self):
        for words in (["--budget", "x"], ["--budget", "0"], ["--only", "nothing_like_this"], ["--jobs", "2"], ["--neighbours", "-1"],
                      ["--unknown"], ["--build", "/nonexistent"]):
            ended = self.run_harness(*words)
            self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (2, 1), words)
            self.assertTrue(ended.stderr.startswith("doctor_blind: "), ended.stderr)


if __name__ == "__main__":
    unittest.main()
