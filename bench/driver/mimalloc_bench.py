# SPDX-License-Identifier: MIT
"""`script/bench mimalloc-bench FOLDER`: keeps a run of mimalloc-bench's bench.sh, and writes its tables.

packaging/mimalloc-bench has its entry for Freehold. FOLDER is mimalloc-bench's: out/bench/benchres.csv has the results, with
one line for each run, and extern/version_*.txt the versions. They are kept in the form of `script/bench malloc --json`, so
that `script/bench report` reads them.
"""

import argparse
import pathlib

from . import machine, peers, stored
from .refusal import refuse
from .rows import build_programs

NAMES = {"fh": peers.OURS, "sys": peers.SYSTEM, "mi2": "mimalloc2", "mi3": "mimalloc3", "sn": "snmalloc", "rp": "rpmalloc", "je": "jemalloc",
         "tc": "gperftools", "tbb": "onetbb"}
FAILED = "Command "  # GNU time's line before the figures of a program that failed


def seconds(text):
    """Of GNU time's [hours:]minutes:seconds, whose minutes bench.sh may have cut off."""
    total = 0.0
    for part in text.split(":"):
        total = 60 * total + float(part)
    return total


def rows_of(text):
    """{row: {allocator: run}} of benchres.csv: benchmark allocator elapsed rss user sys page-faults page-reclaims."""
    rows, error = {}, None
    for line in text.splitlines():
        if line.startswith(FAILED):
            error = line.strip()
        elif not line.startswith("#") and len(fields := line.split()) == 8:
            row, name, elapsed, rss, user, system, major, minor = fields
            run = rows.setdefault(row, {}).setdefault(NAMES.get(name, name), {key: [] for key in ("times", "peaks_mib", "user_ms", "system_ms", "faults")})
            for key, value in (("times", 1000 * seconds(elapsed)), ("peaks_mib", round(int(rss) / 1024, 2)), ("user_ms", 1000 * float(user)),
                               ("system_ms", 1000 * float(system)), ("faults", int(major) + int(minor))):
                run[key].append(round(value, 2))
            run["error"], error = error or run.get("error"), None
    return rows


def versions(folder):
    """{allocator: {version, source}}, of those that are not built there as Debian or the system has them."""
    found = {}
    for short, name in NAMES.items():
        written = folder / "extern" / f"version_{short}.txt"
        if written.exists():
            tag, commit = written.read_text().split(": ", 1)[1].split(", ")[:2]
            found[name] = {"version": commit if name == peers.OURS else tag.removeprefix("v").removeprefix("gperftools-"), "source": f"commit {commit}" if name == peers.OURS else f"tag {tag}, commit {commit}"}
            continue
        try:
            one = peers.find(name)
        except peers.Missing:
            continue
        found[name] = {"version": one.version, "source": one.source}
    return found


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench mimalloc-bench", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="mimalloc-bench, where bench.sh has run")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    results = options.folder / "out" / "bench" / "benchres.csv"
    if not results.exists():
        refuse(f"{results} does not exist: a result is what mimalloc-bench's bench.sh leaves there")
    build_programs()
    rows = rows_of(results.read_text())
    measured = {name for cells in rows.values() for name in cells}
    stored.keep("mimalloc-bench", {
        "machine": machine.describe(), "date": machine.today(),
        "allocators": {name: about for name, about in versions(options.folder).items() if name in measured}, "missing": {},
        "rows": {row: {"unit": "ms", "summary": "", "runs": cells} for row, cells in rows.items()}})
    return 0
