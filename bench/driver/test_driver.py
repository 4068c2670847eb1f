# SPDX-License-Identifier: MIT
"""Unit tests of the driver's arithmetic and of its tables: python3 -m unittest discover -s bench -t bench."""

import contextlib
import io
import json
import math
import os
import pathlib
import resource
import tempfile
import unittest

from driver import again, articles_table, command_tables, counts, floors, floors_table, heaps, heaps_table, instructions, latency, latency_table, malloc, peers, refusal, report, runs, service, service_table, startup, stats, stored, watch
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


class Service(unittest.TestCase):
    SAMPLES = [(0.1, 10 << 20, 5 << 20), (0.2, 30 << 20, 20 << 20), (9.0, 8 << 20, 4 << 20)]

    def test_Summarise_LoadThenIdle_IntegralsOfTheLoadAndLastSample(self):
        found = watch.summarise(self.SAMPLES, loaded_at=1.0)
        self.assertEqual((found["mean"], found["peak"], found["floor"], found["live"]), (20.0, 30.0, 8.0, 4.0))
        self.assertAlmostEqual(found["integral_ratio"], 40 / 25)
        self.assertAlmostEqual(found["peak_ratio"], 1.5)

    def test_Summarise_NothingKnownToLive_NoRatios(self):
        self.assertEqual(set(watch.summarise([(0.1, 1 << 20, 0)], 1.0)), {"mean", "peak", "floor"})

    def test_Anonymous_OwnProcess_SeesTouchedMemory(self):
        before = watch.anonymous_bytes(os.getpid())
        held = bytearray(os.urandom(1 << 20) * 32)
        self.assertGreater(watch.anonymous_bytes(os.getpid()) - before, 30 << 20)
        del held

    def test_AboveCeilings_MoreOrNotMeasured_Named(self):
        def data(**figures):
            return {"rows": {"snapshot_500": {"runs": {"freehold": figures}}}}
        self.assertEqual(service.above_ceilings(data(child_dirty_percent=1.0), "freehold"), [])
        self.assertEqual(len(service.above_ceilings(data(child_dirty_percent=100.0), "freehold")), 1)
        self.assertEqual(len(service.above_ceilings(data(), "freehold")), 1)

    def test_Render_TwoMallocs_TheLeastIsMarkedAndFailuresAreNamed(self):
        data = {"allocators": {"freehold": {"version": ""}, "glibc": {"version": "2.36"}}, "missing": {"onetbb": "not installed"},
                "rows": {"a": {"summary": "", "runs": {"freehold": {"floor": 2.0}, "glibc": {"floor": 4.0}}},
                         "b": {"summary": "", "missing": "node not installed", "runs": {"glibc": {"error": "it ended"}}}}}
        text = service_table.render(data)
        self.assertIn("2.00*", text)
        self.assertNotIn("4.00*", text)
        for said in ("missing: onetbb", "not run: b: node", "failed: b under glibc: it ended"):
            self.assertIn(said, text)
        self.assertIn("| `a` | **2** | 4 |", service_table.markdown(data, "floor"))
        self.assertEqual(service_table.against_best(data, "a", "floor"), "2.00 : 4.00 glibc")
        self.assertEqual(service_table.against_best(data, "b", "floor"), "–")


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


class CommandTables(unittest.TestCase):
    MACHINE = {"cpu_model": "Z80", "cpus": 1, "system": "CP/M", "libc": "none"}

    def test_Timers_EachCount_OverTheFloor_AndAgainstLibraries(self):
        def one(structure, timers, ns, load="alone"):
            return {"test": "rearm", "load": load, "failure": None, "structure": structure, "timers": timers, "phases": [{"cpu_ns": ns}]}
        series = [one(name, n, ns * n) for name, ns in (("baseline", 1), ("wheel", 2), ("wheel-any-thread", 4), ("libuv", 16)) for n in (1000, 10)]
        text = command_tables.timers({"machine": self.MACHINE, "date": "2026-01-02T", "settings": {"repeat": 3},
                                      "series": [*series, one("wheel", 10, 999, "busy")]})
        self.assertIn("| armed timers | 10 | 1,000 |", text)
        self.assertIn("| `TimerWheel` | 20 | 2,000 |", text)
        self.assertIn("| `TimerWheel` over that line | 2.00 | 2.00 |", text)
        self.assertIn("takes 100 times as long as with 10.", text)
        self.assertIn("4.00 to 4.0 times as fast as libuv", text)

    def test_Pools_RowsOfOneThread_LostFirst(self):
        rows = [{"text": name, "threads": threads, "ours": ratio, "best": 1, "pool": "p", "ratio": ratio, "least_ratio": 0.5, "greatest_ratio": 3}
                for name, threads, ratio in (("won", 1, 0.8), ("lost", 1, 2.0), ("many", 8, 9.0))]
        lines = command_tables.pools({"machine": self.MACHINE, "date": "2026-01-02T", "settings": {"repeat": 3, "slot_bytes": 12}, "comparisons": rows}).splitlines()
        self.assertEqual(lines[4:], ["| lost | 2 | 1 | `p` | 2.00 (0.50–3.00) |", "| won | 0.8 | 1 | `p` | 0.80 (0.50–3.00) |"])

    def test_Instructions_FewestFirst_MissingNamed(self):
        text = command_tables.instructions({"date": "2026-01-02", "bytes": 12, "missing": {"snmalloc": "does not run"}, "instructions": {
            "glibc": {"version": "2.36", "malloc": 41.0, "free": 88.0}, "freehold": {"version": "abc-dirty", "malloc": 14.0, "free": 16.0}}})
        self.assertIn("| Freehold | 14 | 16 |\n| glibc 2.36 | 41 | 88 |", text)
        self.assertIn("snmalloc, which does not run.", text)

    def test_Simulate_RareHandOversLeftOut_AsTheCommandPrints(self):
        def row(workload, flat, misses, hand_overs):
            counts = [{"misses": m, "hand_overs": h, "sleeps": 0.5, "calls": 0.25} for m, h in zip(misses, hand_overs)]
            return {"workload": workload, "bytes": 64, "flat": flat, "counts": counts}
        text = command_tables.simulate({"date": "2026-01-02T", "settings": {"cores": [1, 4]},
                                        "rows": [row("own", True, (0, 0.0015), (0, 0.02)), row("churn", False, (0, 12.5), (0, 0.021))]})
        self.assertIn("\nown             64   0.000   0.002  flat\nchurn           64   0.000  12.500  grows\n", text)
        self.assertEqual(text.splitlines()[-2], "churn           64   0.000   0.021     0.500     0.250")
        self.assertEqual(sum(line.startswith("own") for line in text.splitlines()), 1)

    def test_Processes_RatiosWithinEachSet(self):
        sets = [{"Freehold": 200.0, "gearmand": 10.0}, {"Freehold": 400.0, "gearmand": 10.0}, {"Freehold": 900.0, "gearmand": 30.0}]
        text = command_tables.processes({"machine": {"processor": "Z80", "cpus": 1, "kernel": "1", "libc": "none"}, "date": "2026-01-02", "sets": sets,
                                         "round_trips": [{"microseconds": 5.0, "ratio": 0.5}]})
        self.assertIn("10 (10 to 30) | 30 (20 to 40) |", text)


class ReadmeTable(unittest.TestCase):
    def table(self, **rows):
        allocators = [Allocator("freehold", None, ""), Allocator("rpmalloc", None, "1"), Allocator("jemalloc", None, "2")]
        names = [Row(row, "", (), True) for row in rows]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            path.write_text(stored.dumps(malloc.as_json(matrix_of(**rows), names, allocators, {}, "freehold", {"cpus": 2, **Report.MACHINE})))
            return stored.readme_table(path)

    def test_RowsWonAndLost_WorstOfEachPeerNamed_FiveColumns(self):
        text = self.table(a={"freehold": (3, 1), "rpmalloc": (2, 1), "jemalloc": (6, 2)}, b={"freehold": (1, 1), "rpmalloc": (2, 1), "jemalloc": (1, 2)})
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({row.count("|") for row in rows}, {6})
        self.assertIn("| the best of the others, row by row | 1.22 | 1.00 | `a` 1.50 | `b` 1.00 |", rows)
        self.assertIn("| rpmalloc 1 | 0.87 | 1.00 | `a` 1.50 | `b` 0.50 |", rows)
        self.assertIn("| jemalloc 2 | 0.71 | 0.50 | `b` 1.00 | `a` 0.50 |", rows)
        self.assertIn("On 1 of 2 rows another malloc is faster than Freehold. The worst row is `a`: Freehold takes 1.50 times the time of rpmalloc.", text)


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


class Articles(unittest.TestCase):
    DATA = {"claims": [{"article": 2, "claim": "a|b", "verdict": "refuted", "figure": "1 ns", "limits": None, "ratio": 1.5, "least_ratio": 1.0,
                        "greatest_ratio": 2.0, "threshold": 1.25, "at_least": False},
                       {"article": 1, "claim": "c", "verdict": "not testable", "figure": None, "limits": "l", "ratio": None}],
            "tables": [{"article": 2, "title": "T", "columns": ["p", "1", "2"], "rows": [["x", "1", "2"], ["y", "3"]]}]}

    def test_OfArticle_OneOfTwo_ItsClaimsAndTablesOnly(self):
        text = articles_table.of_article(self.DATA, 2)
        self.assertIn("| a\\|b | **refuted** | 1 ns | 1.50 (1.00–2.00), ≤ 1.25 | – |", text)
        self.assertNotIn("| c |", text)
        self.assertTrue(text.endswith("T:\n\n| p | 1 | 2 |\n|---|---|---|\n| x | 1 | 2 |\n| y | 3 |  |"))
        self.assertIn("| c | **not testable** | – | – | l |", articles_table.of_article(self.DATA, 1))


class Peers(unittest.TestCase):
    def test_Label_NameThatEndsInItsMajorVersion_VersionOnce(self):
        self.assertEqual(Allocator("mimalloc3", None, "3.4.3").label, "mimalloc 3.4.3")
        self.assertEqual(Allocator("freehold", None, "3d60011").label, "freehold")


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


class Latency(unittest.TestCase):
    def test_Short_EachMagnitude_ThreeDigits(self):
        self.assertEqual([latency_table.short(ns) for ns in (7.4, 640, 1530, 54_100, 4_070_000, 123_000_000)],
                         ["7", "640", "1.53k", "54.1k", "4.07M", "123M"])

    def test_Medians_ThreeRuns_MedianOfEachQuantileAndTheWorstOfAll(self):
        runs_of_it = [{"malloc": [1, 5, 9]}, {"malloc": [2, 4, 80]}, {"malloc": [3, 6, 7]}]
        self.assertEqual(latency_table.medians(runs_of_it, "malloc"), [2, 5, 80])

    @unittest.skipUnless((PROGRAMS / "latency").exists(), "bench/macro is not built")
    def test_Mixes_EveryOne_QuantilesAscend(self):
        plain = Allocator("plain", None, "")
        for mix in latency.mixes(0.002):
            with self.subTest(mix.name):
                cell = {"ns": [], "error": None}
                latency.run_once(mix, plain, cell, timeout=20)
                self.assertIsNone(cell["error"])
                for quantiles in cell["ns"][0].values():
                    self.assertEqual(len(quantiles), len(latency_table.QUANTILES))
                    self.assertEqual(quantiles, sorted(quantiles))


class Floors(unittest.TestCase):
    @unittest.skipUnless((PROGRAMS / "floors").exists(), "bench/macro is not built")
    def test_Floors_EveryOne_LeastMedianMostAscend(self):
        measured = floors.measure()
        self.assertIn("free_atomic", measured)
        for name, about in measured.items():
            self.assertTrue(0 < about["least"] <= about["median"] <= about["most"], name)
        table = floors_table.render({"floors": measured})
        for name in measured:
            self.assertIn(name, table)


class Heaps(unittest.TestCase):
    @staticmethod
    def data(private=15.0, glibc=20.0, life=1_000, owner=1.0):
        cell = lambda total, drop: {"fill_ms": [total - drop], "drop_ms": [drop], "total_ms": [total], "peak_kib": [2048]}
        maps = {"kind": "map", "summary": "keys", "runs": {"owner-locked": cell(owner, 0.01), "nodes": cell(2.0, 1.0),
                                                           "malloc": cell(3.0, 1.0), "monotonic": cell(2.0, 0.1)}}
        threads = {"kind": "threads", "life": heaps.LIVES[life], "live": life, "threads": 2,
                   "runs": {"private": {"user_ns": [private], "wall_ns": [8.0]}, "glibc": {"user_ns": [glibc], "wall_ns": [11.0]}}}
        return {"machine": {}, "entries": 1000, "missing": {"gone": "not installed"}, "rows": {"map-ordered": maps, "threads": threads}}

    def test_Gate_SlowerThanMallocOrGlibc_Fails(self):
        self.assertTrue(heaps.passes(self.data()))
        self.assertTrue(heaps.passes(self.data(private=25.0, life=1)))
        self.assertFalse(heaps.passes(self.data(private=35.0, life=1)))
        self.assertFalse(heaps.passes(self.data(private=26.0)))
        self.assertFalse(heaps.passes(self.data(owner=3.5)))

    def test_Table_EveryRowAndWhatIsMissing_Shown(self):
        table = heaps_table.render(json.loads(stored.dumps(self.data())))
        for text in ("map-ordered", "1,000, then all back", "15.0", "11.0", "100 times faster", "missing: gone: not installed"):
            self.assertIn(text, table)

    @unittest.skipUnless(pathlib.Path(os.environ.get("FREEHOLD_HEAP_ROWS", "")).is_file(), "bench/heaps is not built")
    def test_Threads_EveryMemory_TimesForEachRound(self):
        program = pathlib.Path(os.environ["FREEHOLD_HEAP_ROWS"]).with_name("heap_thread_rows")
        found, _ = heaps.thread_candidates(["private", "owner-locked", "glibc"])
        for row in heaps.run_threads(program, found, 20_000, 1).values():
            for name, cell in row["runs"].items():
                self.assertEqual(len(cell["user_ns"]), len(cell["wall_ns"]), name)
                self.assertTrue(all(ns > 0 for ns in cell["wall_ns"]), name)

    def test_Names_UnknownOrLacking_Refused(self):
        for part in (["--memories", "owner-locked"], ["--thread-memories", "private"], ["--memories", "x,nodes,owner-locked"],
                     ["--docs", "--entries", "10"]):
            with self.assertRaises(SystemExit) as refused, contextlib.redirect_stderr(io.StringIO()):
                heaps.parse(part)
            self.assertEqual(refused.exception.code, 2)


class PartOfARun(unittest.TestCase):
    def test_Docs_OfSomeRowsOrMixes_Refused(self):
        for parse, part in ((malloc.parse, ["--rows", "pair"]), (malloc.parse, ["--quick"]), (latency.parse, ["--mixes", "clock"])):
            with self.assertRaises(SystemExit) as refused, contextlib.redirect_stderr(io.StringIO()):
                parse(["--docs", *part])
            self.assertEqual(refused.exception.code, 2)


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

    def test_Select_Unknown_RefusedAndTheKnownNamed(self):
        self.assertIn("there are pair, ring_1", refusal_of(self, lambda: malloc.select(self.ROWS, "nonsense")))


if __name__ == "__main__":
    unittest.main()
