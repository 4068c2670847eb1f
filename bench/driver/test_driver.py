# SPDX-License-Identifier: MIT
"""Unit tests of the driver's arithmetic and of its tables: python3 -m unittest discover -s bench -t bench."""

import contextlib
import io
import json
import math
import pathlib
import resource
import tempfile
import unittest

from driver import again, counts, latency, malloc, mimalloc_bench, peers, refusal, report, runs, stats, stored
from driver.peers import Allocator
from driver.rows import PROGRAMS, Row, macro_rows


class Statistics(unittest.TestCase):
    def test_GeometricMean_HalfAndDouble_One(self):
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2.0, 1.0]), 1.0)

    def test_GeometricMean_Nothing_NaN(self):
        self.assertTrue(math.isnan(stats.geometric_mean([])))

    def test_Spread_OneValue_Zero(self):
        self.assertEqual(stats.spread([3.0]), 0.0)

    def test_Spread_FiveValues_HalfQuartileDistanceOverMedian(self):
        self.assertAlmostEqual(stats.spread([1, 2, 4, 6, 100]), 0.5)

    def test_Compare_DifferentWinners_NamesBoth(self):
        c = stats.compare("row", {"ours": (3.0, 10.0, 30.0), "fast": (2.0, 40.0, 90.0), "small": (9.0, 5.0, 20.0)}, "ours")
        self.assertEqual((c.fastest, c.smallest, c.thriftiest), ("fast", "small", "small"))
        self.assertAlmostEqual(c.time_ratio, 1.5)
        self.assertAlmostEqual(c.memory_ratio, 2.0)
        self.assertAlmostEqual(c.cpu_ratio, 1.5)

    def test_Compare_CpuTimeBelowTheClocksTick_RatioOfTicks(self):
        c = stats.compare("row", {"ours": (1.0, 1.0, 3.0), "peer": (1.0, 1.0, 0.0)}, "ours")
        self.assertAlmostEqual(c.cpu_ratio, 3.0)

    def test_Compare_OursOrAllPeersMissing_None(self):
        self.assertIsNone(stats.compare("row", {"fast": (1, 1, 1)}, "ours"))
        self.assertIsNone(stats.compare("row", {"ours": (1, 1, 1)}, "ours"))

    def test_AgainstEach_RowsOfBothOnly(self):
        cells = {"a": {"ours": (1.0, 1.0, 4.0), "peer": (2.0, 4.0, 2.0)}, "b": {"ours": (1.0, 1.0, 1.0)}, "c": {"peer": (1.0, 1.0, 1.0)}}
        self.assertEqual(stats.against_each(cells, "ours"), {"peer": (0.5, 0.25, 2.0)})


class Counts(unittest.TestCase):
    STORED = {"row_1t": {"instructions": 100.0, "faults": 1000, "peak_mib": 10.0}}

    def compared(self, **figures):
        worse, better = counts.changes(self.STORED, {"row_1t": {**self.STORED["row_1t"], **figures}})
        return len(worse), len(better)

    def test_Changes_WithinTolerance_None(self):
        self.assertEqual(self.compared(instructions=102.9, faults=1300, peak_mib=12.5), (0, 0))

    def test_Changes_EachFigureWorse_Named(self):
        for figure, value in (("instructions", 104), ("faults", 1500), ("peak_mib", 14)):
            self.assertEqual(self.compared(**{figure: value}), (1, 0), figure)
            self.assertIn(figure, counts.changes(self.STORED, {"row_1t": {figure: value}})[0][0])

    def test_Changes_Better_SaidToBeStored(self):
        self.assertEqual(self.compared(instructions=90, faults=100), (0, 2))

    def test_Changes_RowThatIsNotStored_Worse(self):
        self.assertEqual(len(counts.changes({}, {"row": {"faults": 1}})[0]), 1)

    def test_CountAgain_WorseOnce_LeastOfItsCounts(self):
        asked = []
        recount = lambda wanted: asked.append(wanted("row_1t")) or {"row_1t": {"instructions": 101.0}}
        found = {"row_1t": {"instructions": 110.0, "faults": 900}, "other": {"faults": 1}}
        kept = counts.count_again({**self.STORED, "other": {"faults": 1}}, found, recount)
        self.assertEqual((kept, asked), ({"row_1t": {"instructions": 101.0, "faults": 900}, "other": {"faults": 1}}, [True]))

    def test_CountAgain_WorseEachTime_StaysWorse(self):
        found = counts.count_again(self.STORED, {"row_1t": {"instructions": 110.0}}, lambda wanted: {"row_1t": {"instructions": 109.0}})
        self.assertEqual(found, {"row_1t": {"instructions": 109.0}})

    def test_Stored_EveryRowOfTheGate(self):
        stored = json.loads(counts.STORED.read_text())
        self.assertEqual(set(stored), set(counts.INSTRUCTIONS) | set(counts.FAULTS))


def matrix_of(**rows):
    return {row: {name: runs.Cell(times=[t], peaks=[p], users=[t], systems=[0.5], faults=[7], walls=[t]) for name, (t, p) in cells.items()} for row, cells in rows.items()}


class Report(unittest.TestCase):
    MACHINE = {"processor": "Z80", "cpus": 1, "kernel": "1", "libc": "glibc 2.36", "line_round_trip_ns": None}

    def setUp(self):
        self.matrix = matrix_of(won={"freehold": (1, 1), "peer": (2, 2)}, lost={"freehold": (3, 2), "peer": (2, 2)})
        self.rows = [Row("won", "", (), True), Row("lost", "", (), True)]
        self.allocators = [Allocator("freehold", None, ""), Allocator("peer", None, "2.1", "wheel peer 2.1")]

    def render(self):
        return report.render(self.matrix, self.rows, self.allocators, {"gone": "not installed"}, "freehold")

    def test_Render_LostRow_ComesFirst(self):
        text = self.render()
        self.assertLess(text.index("- lost"), text.index("  won"))
        self.assertIn("rows lost: 1", text)

    def test_Render_RunsThatDiffer_LeastBesideMedian(self):
        cell = self.matrix["won"]["freehold"]
        cell.times, cell.users, cell.systems = [1, 1.5, 0.25], [1, 2, 0.5], [0.5, 0.5, 0.25]
        text = self.render()
        self.assertRegex(text, r"won +ns/op +1\.00\* ±31% 0\.25 ")
        self.assertRegex(text, r"won +ms +1\.50\* 0\.75 ")
        self.assertRegex(text, "minima instead of their medians: +0.43, ")

    def test_Render_TwentyRuns_TheirQuantiles(self):
        self.assertNotIn("quantiles", self.render())
        cell = self.matrix["won"]["freehold"]
        cell.times = cell.users = cell.systems = [*range(1, 22)]
        self.assertRegex(self.render(), r"50%.*\n.*\nwon +ns/op +freehold +21 +1\.00 +3\.00 +6\.00 +11\.0 +16\.0 +19\.0 +21\.0\n\n")

    def test_Render_MissingPeerAndFailedCell_Named(self):
        self.matrix["won"]["peer"].error = "exit status -11"
        text = self.render()
        self.assertIn("missing: gone: not installed", text)
        self.assertIn("failed: won under peer: exit status -11", text)
        self.assertNotIn("1.00  freehold", text)

    def test_Render_PeersVersion_InEveryTable(self):
        tables = self.render().split("\n\n")
        naming = [t for t in tables if "peer" in t and not t.startswith(("missing", "time, ours"))]
        self.assertEqual(len(naming), 8)
        for one in naming:
            self.assertIn("2.1", one)

    def test_Table_HeadingOfTwoLines_AlignedWithTheColumn(self):
        self.assertEqual(report.table(["row", "long\n2"], [["a", 5]]), "row  long\n        2\n---  ----\na       5")

    def test_Json_Summary_GeometricMeans(self):
        data = malloc.as_json(self.matrix, self.rows, self.allocators, {}, "freehold", {"cpus": 2})
        self.assertAlmostEqual(data["summary"]["time"], math.sqrt(0.5 * 1.5), places=3)
        self.assertEqual(data["rows"]["lost"]["runs"]["peer"]["times"], [2])

    def test_Report_WrittenAndReadAgain_SameTable(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            path.write_text(stored.dumps(malloc.as_json(self.matrix, self.rows, self.allocators, {"gone": "not installed"}, "freehold", self.MACHINE)))
            machines, results = again.read([path])
        self.assertEqual(report.render(*results, "freehold"), self.render())
        self.assertEqual(machines, ["Z80, 1 CPUs, kernel 1, glibc 2.36, a cache line's round trip ? ns"])


class MimallocBench(unittest.TestCase):
    def test_Rows_MinutesKibibytesAndBothKindsOfFaults_AsStored(self):
        rows = mimalloc_bench.rows_of("# benchmark allocator elapsed\ncfrac  fh  03.5 2048 3.25 0.01 1 99\ncfrac  sys 1:03.5 1024 60.00 0.00 0 7\n")
        self.assertEqual(rows["cfrac"]["freehold"], {"times": [3500], "peaks_mib": [2], "user_ms": [3250], "system_ms": [10], "faults": [100], "error": None})
        self.assertEqual(rows["cfrac"]["glibc"]["times"], [63500])

    def test_Rows_ProgramFailed_ErrorOfThatRunAlone(self):
        rows = mimalloc_bench.rows_of("Command exited with non-zero status 1\nlua sn 0.1 9 0 0 0 9\nlua rp 0.1 9 0 0 0 9\n")
        self.assertEqual([rows["lua"][name]["error"] for name in ("snmalloc", "rpmalloc")], ["Command exited with non-zero status 1", None])

    def test_Rows_RunAgain_BothKept(self):
        rows = mimalloc_bench.rows_of("gs fh 1 9 0 0 0 9\ngs fh 2 9 0 0 0 9\n")
        self.assertEqual(rows["gs"]["freehold"]["times"], [1000, 2000])


class Stored(unittest.TestCase):
    MARKED = "before\n<!-- begin x: written by script/bench docs -->\nold\n<!-- end x -->\nafter"

    def test_BetweenMarks_OldContent_Replaced(self):
        self.assertEqual(stored.between_marks(self.MARKED, "x", "new\ntable"), self.MARKED.replace("old", "new\ntable"))

    def test_BetweenMarks_NoMarksOrTwice_Refused(self):
        for text in ("nothing", self.MARKED + self.MARKED, self.MARKED.replace("end", "bend")):
            with self.assertRaises(SystemExit):
                stored.between_marks(text, "x", "new")

    def test_Dumps_RowsOfAnyShape_ReadBack(self):
        data = {"machine": {"cpus": 2}, "rows": {"a": {"summary": "s", "runs": {"p": {"times": [1]}, "q": {"times": []}}}, "b": {"runs": {"p": {}}}}}
        self.assertEqual(json.loads(stored.dumps(data)), data)

    def test_WithoutSamples_MediansAreKept_OneLineEach(self):
        data = {"date": "2026", "series": [{"ns": 1.5, "spread": 0.1, "samples": [1, 2]}, {"ns": 2, "spread": 0, "samples": []}]}
        kept = stored.without_samples(data)
        self.assertEqual(kept["series"], [{"ns": 1.5, "spread": 0.1}, {"ns": 2, "spread": 0}])
        self.assertEqual(json.loads(stored.dumps(kept)), kept)
        self.assertEqual(stored.dumps(kept).count("\n"), 7)

    def test_Documents_Tables_AreThoseOfTheStoredRuns(self):
        self.assertEqual(stored.main(["--check"]), 0)


def refusal_of(test, act):
    """The one line that is said."""
    said = io.StringIO()
    with test.assertRaises(SystemExit) as refused, contextlib.redirect_stderr(said):
        act()
    test.assertEqual(refused.exception.code, 2)
    test.assertEqual(said.getvalue().count("\n"), 1)
    return said.getvalue()


class BadInput(unittest.TestCase):
    def test_Allocators_UnknownName_NamesTheKnown(self):
        self.assertIn("mimalloc3", refusal_of(self, lambda: peers.find_all(["freehold", "nonsense"])))

    def test_Allocators_NoneIsThere_ReasonOfEach(self):
        self.assertIn("/no/such.so does not exist", refusal_of(self, lambda: peers.find_all(["mine=/no/such.so"])))

    def test_Json_FolderThatIsNotThere_RefusedBeforeTheRun(self):
        for main in (malloc.main, latency.main):
            self.assertIn("cannot write", refusal_of(self, lambda main=main: main(["--json", "/no/such/folder/x"])))

    def test_Json_FileThatCanBeWritten_IsNotLeftBehind(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.json")
            refusal.check_writable(path)
            self.assertFalse(path.exists())

    def test_Report_FileThatIsNoResult_SaysWhatIs(self):
        with tempfile.TemporaryDirectory() as folder:
            for content in (None, "", "{", "[]", "{}", '{"machine": {}, "allocators": {}, "missing": {}, "rows": {"a": {}}}'):
                path = pathlib.Path(folder, "x.json")
                if content is not None:
                    path.write_text(content)
                self.assertIn("script/bench malloc --json", refusal_of(self, lambda: again.main([str(path)])))


class Gate(unittest.TestCase):
    def test_Gate_MeanBelowAndAbove_PassesAndFails(self):
        matrix = matrix_of(a={"freehold": (1, 1), "peer": (4, 1)}, b={"freehold": (3, 1), "peer": (3, 1)})
        self.assertTrue(malloc.passes(matrix, "freehold", 0.51))
        self.assertFalse(malloc.passes(matrix, "freehold", 0.49))

    def test_Gate_FailedRun_Fails(self):
        matrix = matrix_of(a={"freehold": (1, 1), "peer": (4, 1)})
        matrix["a"]["freehold"].error = "exit status -6"
        self.assertFalse(malloc.passes(matrix, "freehold", 9))


@unittest.skipUnless((PROGRAMS / "measure").exists(), "bench/macro is not built")
class Measured(unittest.TestCase):
    PLAIN = Allocator("plain", None, "")

    def run_once(self, *command, library=None):
        cell = runs.Cell()
        runs.run_once(Row("row", "", command, False), Allocator("any", library, ""), cell, timeout=20)
        return cell

    def test_Measure_Sleep_ItsTime(self):
        cell = self.run_once("sleep", "0.05")
        self.assertGreaterEqual(cell.times[0], 50)
        self.assertLess(cell.times[0], 5000)

    def test_Measure_SmallChildOfLargeParent_ChildsPeakOnly(self):
        parents = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.assertLess(self.run_once("true").peaks[0], parents / 2)

    def test_Measure_ChildThatTouches64MiB_SeenInThePeak(self):
        cell = self.run_once("dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", "status=none")
        self.assertGreater(cell.peaks[0], 64)
        self.assertLess(cell.peaks[0], 72)

    def test_Measure_Failure_ErrorAndNoTime(self):
        cell = self.run_once("sh", "-c", "echo reason >&2; exit 3")
        self.assertEqual(cell.times, [])
        self.assertIn("exit status 3 reason", cell.error)

    def test_Measure_Killed_ErrorNamesSignal(self):
        self.assertIn("-9", self.run_once("sh", "-c", "kill -9 $$").error)

    def test_Measure_Preload_ReachesTheChild(self):
        cell = self.run_once("sh", "-c", 'test "$LD_PRELOAD" = /nonexistent/library.so', library="/nonexistent/library.so")
        self.assertIsNone(cell.error)

    def test_RunRow_ShortRow_RepeatedMoreOftenUnlessQuick(self):
        row = Row("row", "", ("true",), False)
        for quick, expected in ((False, 2 * runs.MORE), (True, 2)):
            cells = {"plain": runs.Cell()}
            runs.run_row(row, [self.PLAIN], 2, quick, cells)
            self.assertEqual(len(cells["plain"].times), expected)

    def test_MacroRows_EveryRow_DoesItsWork(self):
        for row in macro_rows(0.001):
            with self.subTest(row.name):
                cell = runs.Cell()
                runs.run_once(row, self.PLAIN, cell, timeout=20)
                self.assertIsNone(cell.error)
                self.assertGreater(cell.times[0], 0)


if __name__ == "__main__":
    unittest.main()
