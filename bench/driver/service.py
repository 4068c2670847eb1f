# SPDX-License-Identifier: MIT
"""`script/bench service`: resident memory over a service's life: survivors, changing mixes, forks, servers; every malloc on every row."""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import time
from dataclasses import dataclass, field

from . import machine, peers, report, runs, service_programs, service_table, stored, watch
from .malloc import select
from .refusal import check_writable
from .rows import PROGRAMS, build_programs

IDLE_SECONDS = 30
IDLE_PERIOD = 1.0  # seconds between samples then
LONG_IDLE = {"idle": 10}  # times as long
QUICK_SCALE = 0.1
# For any machine, since counts of pages repeat; at a tenth of the size after 2 idle seconds, too, where the 2 MiB that may be kept free weigh ten
# times as much. By sessions so few pages hold a survivor that only their number, times 1.1, and some MiB can be told.
CEILINGS = {"survivors_random": {"floor_ratio": 1.2}, "survivors_48": {"floor_ratio": 1.1}, "survivors_48_scope": {"excess_mib": 7.0}, "survivors_1024": {"floor_ratio": 1.15},
            "survivors_sessions": {"excess_mib": 4.0}, "only_frees": {"floor": 8.0}, "phases": {"floor_ratio": 1.2},
            "heavy_tail": {"floor_ratio": 1.6}, "fleet": {"floor_ratio": 1.45},
            **{row: {"lines_at_first": 1.0, "lines_at_last": 0.1} for row in ("lines_16", "lines_32")},
            "snapshot_500": {"child_dirty_percent": 1.6}}

@dataclass
class Traffic:
    """A row of bench/macro/service_rows.cpp."""

    name: str
    summary: str
    scale: float

    def why_not(self):
        return None


@dataclass
class Run:
    row: object
    allocator: object
    process: subprocess.Popen | None = None
    watcher: watch.Watch | None = None
    figures: dict = field(default_factory=dict)
    error: str | None = None
    due: float = 0  # when the idle time is over
    keeps: list = field(default_factory=list)  # until the run ends


def traffic_rows(scale):
    listing = subprocess.run([PROGRAMS / "service_rows", "--list"], capture_output=True, text=True, check=True).stdout
    return [Traffic(*line.split("\t"), scale) for line in listing.splitlines()]


def environment(row, allocator, live):
    library = service_programs.preload(row, allocator)
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
    return {**plain, **peers.ENVIRONMENT.get(allocator.name, {}), "FREEHOLD_LIVE_FILE": live, "PYTHONMALLOC": "malloc",
            **({"LD_PRELOAD": library} if library else {})}


def load(run, seconds, period):
    """Starts the program and loads it. After that it is idle, and is watched until finish()."""
    live = watch.live_file()
    run.keeps.append(live)
    is_traffic = isinstance(run.row, Traffic)
    if is_traffic:
        command, port = [str(PROGRAMS / "service_rows"), run.row.name, str(run.row.scale)], 0
    else:
        folder = service_programs.folder()
        port, command = service_programs.free_port(), None
        run.keeps.append(folder)
        command = run.row.start(folder.__enter__(), port)
    run.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=environment(run.row, run.allocator, live.name))
    run.watcher = watch.Watch(run.process.pid, period, live.name if is_traffic else None)
    if is_traffic:
        line = run.process.stdout.readline()
        if not line:
            raise OSError("it ended before its load was done")
        run.figures |= {name: value for name, value in json.loads(line).items() if name != "row"}
    else:
        run.figures |= run.row.load(run.process, port, seconds)
    run.watcher.period = IDLE_PERIOD
    run.figures["loaded_at"] = time.monotonic() - run.watcher.started


def end_family(process):
    """The traffic rows end with their standard input, and so does the compiler's shell; servers are asked to."""
    process.stdin.close()
    try:
        process.wait(0.3)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # PostgreSQL's way to end without waiting for clients
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def finish(run):
    """The end of the idle time: the last sample is the floor."""
    if run.process is None:
        return
    run.watcher.stop()
    usage = cpu_and_faults(run.process.pid)
    end_family(run.process)
    run.process.stdout.close()
    for one in run.keeps:
        one.__exit__(None, None, None)
    if run.error is None:
        run.figures |= {**watch.summarise(run.watcher.samples, run.figures["loaded_at"]), **usage}
        if holds := run.figures.get("held_mib") or run.figures.get("live"):
            run.figures["floor_ratio"] = run.figures["floor"] / holds
        if "held_mib" in run.figures:
            run.figures["excess_mib"] = run.figures["floor"] - 1.1 * run.figures["held_mib"]


def cpu_and_faults(pid):
    """Of the process, its children that ended, and those that run: CPU seconds and page faults."""
    ticks, faults = 0, 0
    for one in watch.family(pid):
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        faults += int(fields[7]) + int(fields[8])
        ticks += sum(map(int, fields[11:15]))
    return {"cpu": ticks / os.sysconf("SC_CLK_TCK"), "faults": faults}


def finish_those_due(waiting, now):
    for run in [one for one in waiting if one.due <= now]:
        finish(run)
        waiting.remove(run)


def measure(rows, allocators, idle, seconds, period):
    """All runs. One program is loaded at a time; others sleep meanwhile, since their idle times overlap."""
    finished, waiting = [], []
    for row in rows:
        if row.why_not() is not None:
            continue
        for allocator in random.sample(allocators, len(allocators)):
            runs.progress(f"{row.name} {allocator.name}, {len(waiting)} are idle")
            run = Run(row, allocator)
            finished.append(run)
            try:
                load(run, seconds, period)
                run.due = time.monotonic() + idle * LONG_IDLE.get(row.name, 1)
                waiting.append(run)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                run.error = str(error)
                finish(run)
            finish_those_due(waiting, time.monotonic())
    while waiting:
        runs.progress(f"{len(waiting)} are idle")
        time.sleep(max(min(one.due for one in waiting) - time.monotonic(), 0))
        finish_those_due(waiting, time.monotonic())
    runs.progress("")
    return finished


def rounded(figures):
    return {name: float(f"{value:.4g}") for name, value in figures.items()}


def as_json(finished, rows, allocators, missing, described, options):
    table = {row.name: {"summary": row.summary, **({"missing": row.why_not()} if row.why_not() else {}),
                        "runs": {run.allocator.name: {"error": run.error} if run.error else rounded(run.figures) for run in finished if run.row is row}}
             for row in rows}
    return {"machine": described, "date": machine.today(), "idle_seconds": options.idle, "program_seconds": options.seconds,
            "allocators": {a.name: {"version": a.version, "source": a.source} for a in allocators}, "missing": missing, "rows": table}


def into_stored_run(data, order):
    """The stored run with these rows, of which each says when and where it was measured."""
    run = json.loads((stored.STORE / "service.json").read_text())
    where = f"{data['date']} on {data['machine']['processor']}, Freehold {data['allocators'][peers.OURS]['version']}"
    rows = {**run["rows"], **{name: {**row, "measured": where} for name, row in data["rows"].items()}}
    return {**run, "rows": {name: rows[name] for name in order if name in rows}}


def above_ceilings(data, ours):
    """Lines for what is above its ceiling, and for what was not measured."""
    lines = []
    for row, figures in CEILINGS.items():
        for figure, most in figures.items():
            found = data["rows"].get(row, {}).get("runs", {}).get(ours, {}).get(figure)
            if row in data["rows"] and (found is None or found > most):
                lines.append(f"{row}: {figure} is {found}, at most {most}")
    return lines


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench service", description=__doc__)
    parser.add_argument("--rows", help="comma-separated names or prefixes (default: all)")
    parser.add_argument("--allocators", default=",".join(peers.ALL), help="as for script/bench malloc")
    parser.add_argument("--idle", type=float, help=f"seconds of silence after the load (default: {IDLE_SECONDS}; the row idle: ten times that)")
    parser.add_argument("--seconds", type=float, help="of load on each real program (default: 60)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, 2 idle seconds, 2 seconds of load: a smoke test")
    parser.add_argument("--check", action="store_true", help="exit code 1 if Freehold is above a ceiling")
    parser.add_argument("--json", metavar="FILE", help="write the figures and the machine's description")
    parser.add_argument("--docs", action="store_true", help="keep the run in docs/benchmarks and write its tables; with --rows, these rows in the stored run")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    options = parser.parse_args(arguments)
    if options.docs and options.quick:
        parser.error("--docs keeps a run of full size: not with --quick (use --json)")
    options.idle = options.idle if options.idle is not None else 2 if options.quick else IDLE_SECONDS
    options.seconds = options.seconds if options.seconds is not None else 2 if options.quick else 60
    return options


def main(arguments):
    options = parse(arguments)
    check_writable(options.json)
    build_programs()
    all_rows = traffic_rows(QUICK_SCALE if options.quick else 1) + service_programs.ALL
    rows = select(all_rows, options.rows)
    if options.list:
        print(report.table(["row", "what"], [[row.name, row.summary.ljust(60)] for row in rows]))
        return 0
    allocators, missing = peers.find_all([name.strip() for name in options.allocators.split(",")])
    described = machine.describe()
    finished = measure(rows, allocators, options.idle, options.seconds, 0.05 if options.quick else 0.1)
    data = as_json(finished, rows, allocators, missing, described, options)
    kept = into_stored_run(data, [row.name for row in all_rows]) if options.docs and options.rows else data
    stored.finish("service", service_table.render, data, options, kept)
    above = above_ceilings(data, allocators[0].name) if options.check else []
    print("\n".join(above))
    return 1 if above or any(run.error and run.allocator is allocators[0] for run in finished) else 0
