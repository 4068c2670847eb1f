# SPDX-License-Identifier: MIT
"""`script/bench report FILE…`: the table of results written with --json before; several files are put together."""

import argparse
import json
import pathlib

from . import machine, peers, report, runs
from .rows import Row


def read(paths):
    """(machines, (matrix, rows, allocators, missing)) of all files; a row that occurs twice counts from the last."""
    machines, matrix, rows, allocators, missing = [], {}, {}, {}, {}
    for path in paths:
        data = json.loads(pathlib.Path(path).read_text())
        machines.append(machine.one_line(data["machine"]))
        missing.update(data["missing"])
        for name, about in data["allocators"].items():
            allocators[name] = peers.Allocator(name, None, about["version"], about.get("source", ""))
        for name, about in data["rows"].items():
            rows[name] = Row(name, about["summary"], (), about["unit"] == Row("", "", (), True).unit)
            matrix[name] = {a: runs.Cell(r["times"], r["peaks_mib"], r["user_ms"], r["system_ms"], r["faults"], [], r["error"]) for a, r in about["runs"].items()}
    for cells in matrix.values():
        for name in allocators:
            cells.setdefault(name, runs.Cell())
    return machines, (matrix, list(rows.values()), list(allocators.values()), missing)


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench report", description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--ours", default=peers.OURS)
    options = parser.parse_args(arguments)
    machines, results = read(options.files)
    print("\n".join(machines) + "\n")
    print(report.render(*results, options.ours))
    return 0
