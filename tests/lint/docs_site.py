#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""script/docs in a copy of what it reads: with faults planted, wrong arguments, a disk that is full. The copy has no history and no build."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script" / "site"))
import flowchart  # noqa: E402


class Docs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "tree"
        for folder in ("script", "docs", "freehold"):
            shutil.copytree(ROOT / folder, self.root / folder, ignore=shutil.ignore_patterns("*.cpp"))
        for file in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "sim/README.md"):
            (self.root / file).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / file, self.root / file)

    def run_docs(self, *words, before=""):
        return subprocess.run(["bash", "-c", f'{before} exec "$@"', "bash", self.root / "script" / "docs", *words], cwd=self.root,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, check=False)

    def left(self):
        return sorted(file.name for file in (self.root / "build").glob("*"))

    def test_Arguments_Wrong_OneLineAndTwo(self):
        for words in (["--nosuch"], ["--check", "more"], ["--build"], ["--serve", "0"], ["--serve", "x"], ["--serve", "1", "2"], [""], ["--reports", "/nosuch"]):
            done = self.run_docs(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), f"{words}: {done.stderr}")
        self.assertFalse((self.root / "build").exists())

    def test_Site_BuiltThenDiskFull_FormerSiteStays(self):
        report = self.root / "build" / "reports" / "doctor.html"
        report.parent.mkdir(parents=True)
        report.write_text("<p>one</p>", encoding="utf-8")
        done = self.run_docs()
        self.assertEqual(done.returncode, 0, done.stderr)
        site = self.root / "build" / "docs"
        before = {file: file.stat().st_mtime_ns for file in site.rglob("*")}
        for page in ("index.html", "overview.html", "reports/doctor.html", "reference/classfreehold_1_1pool_1_1ObjectPool.html", "search/search_index.json"):
            self.assertIn(site / page, before)
        text = (site / "reports.html").read_text(encoding="utf-8")
        self.assertIn('href="reports/doctor.html"', text)
        self.assertNotIn("reports/timers.html", text)  # which is not written
        found = {entry["title"] for entry in json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]}
        for name in ("freehold::pool::ObjectPool", "freehold::pool::ObjectPool::make", "freehold_trim", "thread_alloc"):
            self.assertIn(name, found)
        self.assertIn("<svg", (site / "architecture.html").read_text(encoding="utf-8"))
        # No file may become larger than 64 KiB, as on a disk that is full; and the shell's signal for it is off.
        done = self.run_docs(before="trap '' XFSZ; ulimit -f 64;")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        self.assertEqual({file: file.stat().st_mtime_ns for file in site.rglob("*")}, before)
        self.assertEqual(self.left(), ["docs", "reports"])

    def test_Links_Wrong_EachIsNamed(self):
        with (self.root / "docs" / "pools.md").open("a", encoding="utf-8") as page:
            page.write("\nSee [one](nosuch.md), [two](heaps.md#nosuch), [three](reports/nosuch.html).\n")
        (self.root / "docs" / "unlisted.md").write_text("# A page that the index does not have\n", encoding="utf-8")
        done = self.run_docs("--check")
        self.assertEqual(done.returncode, 1)
        for words in ("nosuch.md", "#nosuch", "reports/nosuch.html", "unlisted.md"):
            self.assertIn(words, done.stderr)
        self.assertEqual(self.left(), [])

    def test_Flowchart_UnknownLine_Refused(self):
        source = flowchart.dot_source('```mermaid\nflowchart TD\n  a["x/y"]\n  a -->|"p, q"| b\n```')
        self.assertIn('a [label="x/y"]', source)
        self.assertIn('a -> b [label="p\\nq"]', source)
        for block in ("```mermaid\nsequenceDiagram\n```", "```mermaid\nflowchart TD\n a ==> b\n```", "```mermaid\n```"):
            with self.assertRaisesRegex(ValueError, "cannot draw"):
                flowchart.dot_source(block)


if __name__ == "__main__":
    unittest.main()
