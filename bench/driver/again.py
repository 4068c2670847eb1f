# SPDX-License-Identifier: MIT
"""`script/bench report FILE…`: the table of results written with --json before; several files are put together."""

import argparse
import json
import pathlib

from . import machine, peers, report, runs
from .refusal import refuse
from .rows import Row


def stored_run(path):
    """What `script/bench malloc --json` wrote."""
    way_out = "a result is what 'script/bench malloc --json FILE' writes"
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror}; {way_out}")
    except ValueError:
        refuse(f"{path}: is not JSON; {way_out}")
    if not isinstance(data, dict) or not {"machine", "allocators", "missing", "rows"} <= data.keys() \
            or any("unit" not in row for row in data["rows"].values()):
        refuse(f"{path}: is not a comparison of mallocs; {way_out}")
    return data


def read(paths):
    """(machines, (matrix, rows, allocators, missing)) of all files; a row that occurs twice counts from the last."""
    machines, matrix, rows, allocators, missing = [], {}, {}, {}, {}
    for path in paths:
        data = stored_run(path)
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
