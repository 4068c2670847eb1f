"""Unit tests of the driver's arithmetic and of its tables: python3 -m unittest discover -s bench -t bench."""

import json
import math
import pathlib
import resource
import tempfile
import unittest

from driver import again, instructions, malloc, report, runs, startup, stats
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
        c = stats.compare("row", {"ours": (3.0, 10.0), "fast": (2.0, 40.0), "small": (9.0, 5.0)}, "ours")
        self.assertEqual((c.fastest, c.smallest), ("fast", "small"))
        self.assertAlmostEqual(c.time_ratio, 1.5)
        self.assertAlmostEqual(c.memory_ratio, 2.0)

    def test_Compare_OursOrAllPeersMissing_None(self):
        self.assertIsNone(stats.compare("row", {"fast": (1, 1)}, "ours"))
        self.assertIsNone(stats.compare("row", {"ours": (1, 1)}, "ours"))

    def test_AgainstEach_RowsOfBothOnly(self):
        cells = {"a": {"ours": (1.0, 1.0), "peer": (2.0, 4.0)}, "b": {"ours": (1.0, 1.0)}, "c": {"peer": (1.0, 1.0)}}
        self.assertEqual(stats.against_each(cells, "ours"), {"peer": (0.5, 0.25)})


def matrix_of(**rows):
    return {row: {name: runs.Cell(times=[t], peaks=[p], walls=[t]) for name, (t, p) in cells.items()} for row, cells in rows.items()}


class Report(unittest.TestCase):
    MACHINE = {"processor": "Z80", "cpus": 1, "kernel": "1", "libc": "glibc 2.36", "line_round_trip_ns": None}

    def setUp(self):
        self.matrix = matrix_of(won={"freehold": (1, 1), "peer": (2, 2)}, lost={"freehold": (3, 2), "peer": (2, 2)})
        self.rows = [Row("won", "", (), True), Row("lost", "", (), True)]
        self.allocators = [Allocator("freehold", None, ""), Allocator("peer", None, "")]

    def render(self):
        return report.render(self.matrix, self.rows, self.allocators, {"gone": "not installed"}, "freehold")

    def test_Render_LostRow_ComesFirst(self):
        text = self.render()
        self.assertLess(text.index("- lost"), text.index("  won"))
        self.assertIn("rows lost: 1", text)

    def test_Render_MissingPeerAndFailedCell_Named(self):
        self.matrix["won"]["peer"].error = "exit status -11"
        text = self.render()
        self.assertIn("missing: gone: not installed", text)
        self.assertIn("failed: won under peer: exit status -11", text)
        self.assertNotIn("1.00  freehold", text)

    def test_Json_Summary_GeometricMeans(self):
        data = malloc.as_json(self.matrix, self.rows, self.allocators, {}, "freehold", {"cpus": 2})
        self.assertAlmostEqual(data["summary"]["time"], math.sqrt(0.5 * 1.5))
        self.assertEqual(data["rows"]["lost"]["runs"]["peer"]["times"], [2])


    def test_Report_WrittenAndReadAgain_SameTable(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            path.write_text(json.dumps(malloc.as_json(self.matrix, self.rows, self.allocators, {"gone": "not installed"}, "freehold", self.MACHINE)))
            machines, results = again.read([path])
        self.assertEqual(report.render(*results, "freehold"), self.render())
        self.assertEqual(machines, ["Z80, 1 CPUs, kernel 1, glibc 2.36, a cache line's round trip ? ns"])


class Gate(unittest.TestCase):
    def test_Gate_MeanBelowAndAbove_PassesAndFails(self):
        matrix = matrix_of(a={"freehold": (1, 1), "peer": (4, 1)}, b={"freehold": (3, 1), "peer": (3, 1)})
        self.assertTrue(malloc.passes(matrix, "freehold", 0.51))
        self.assertFalse(malloc.passes(matrix, "freehold", 0.49))

    def test_Gate_FailedRun_Fails(self):
        matrix = matrix_of(a={"freehold": (1, 1), "peer": (4, 1)})
        matrix["a"]["freehold"].error = "exit status -6"
        self.assertFalse(malloc.passes(matrix, "freehold", 9))


class Instructions(unittest.TestCase):
    PROFILE = """\
fn=(1) main
10 7
cfn=(2) fast_path_allocate
calls=5 20
11 100
fn=(2)
20 30
cob=(3) other.so
cfn=(4) malloc
calls=5 1
21 70
+1 5
fn=(4)
1 70
"""

    def test_CostOfCalls_CallerWithOwnCosts_CalleesOnly(self):
        self.assertEqual(instructions.cost_of_calls(self.PROFILE, "fast_path_allocate"), 70)

    def test_CostOfCalls_CallerThatIsNotThere_Zero(self):
        self.assertEqual(instructions.cost_of_calls(self.PROFILE, "fast_path_free"), 0)


class Startup(unittest.TestCase):
    def test_Added_OneSlowRound_MedianOfThePairs(self):
        self.assertEqual(startup.added([(1, 10), (9, 10), (1, 10)], [(2, 12), (10, 12), (90, 12)]), (1, 2))


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


class Selection(unittest.TestCase):
    ROWS = [Row(name, "", (), True) for name in ("pair", "ring_1", "ring_64", "ring_64_4pairs")]

    def names(self, wanted):
        return [row.name for row in malloc.select(self.ROWS, wanted)]

    def test_Select_Prefix_AllThatBeginWithIt(self):
        self.assertEqual(self.names("ring"), ["ring_1", "ring_64", "ring_64_4pairs"])

    def test_Select_ExactName_ThatOneOnly(self):
        self.assertEqual(self.names("ring_64"), ["ring_64"])

    def test_Select_Unknown_Refused(self):
        with self.assertRaises(SystemExit):
            malloc.select(self.ROWS, "nonsense")


if __name__ == "__main__":
    unittest.main()
