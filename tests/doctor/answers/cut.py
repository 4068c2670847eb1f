#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cuts out of a report of the doctor's (--json) what a verdict rests on, for answers_test.cpp:
cut.py report.json NAME EXPECTED RIGHT[,RIGHT...] [advised]"""

import json
import sys
from pathlib import Path

TRIAL = ("wall_s", "user_s", "system_s", "peak_rss_bytes", "page_faults", "voluntary_switches", "taken_s", "ready_share", "run_delay_s", "own_cpus", "throttled_s",
         "instructions", "throughput")
RECORDING = ("threads", "seconds", "cpu_s", "thread_s", "mapped_bytes", "mapping_s", "cpu_share", "cpu_share_error", "blocked_share", "blocked_share_error",
             "lock_wait_s", "lock_wait_share", "remote_share", "lines_watched", "lines_shared", "peak_live_bytes")
FACTS = ("machine_cpus", "quota_cpus", "affinity_cpus", "online_cpus", "own_cpus", "most_threads")


def rounded(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def picked(source, names):
    """What is neither null nor 0."""
    return {name: rounded(source[name]) for name in names if source.get(name)}


def cut_trials(trials):
    return [{**picked(trial, TRIAL), "round": trial["round"]} for trial in trials]


def cut_recording(of):
    if of is None:
        return None
    times = {name: picked(of[name], ("calls", "cpu_s", "blocked_s")) for name in ("allocating", "freeing")}
    waits = [picked(wait, ("kind", "count", "seconds")) for wait in of["lock_waits"]]
    return {**picked(of, RECORDING), **times, "lock_waits": waits}


def cut(report):
    of = report["experiment"]
    code = of["code"] and {name: rounded(value) for name, value in of["code"].items() if isinstance(value, (bool, float)) and value is not None}
    return {"settings": {"knob": report["settings"]["knob"]},
            "experiment": {**picked(of, FACTS), "code": code, "control": of["control"],
                           "delayed": [{"delay_s": rounded(one["delay_s"]), "trials": cut_trials(one["trials"])} for one in of["delayed"]],
                           "crowded": cut_trials(of.get("crowded", [])),
                           "variants": [{name: one[name] for name in ("treatment", "name", "environment")} for one in of["variants"]],
                           "cells": [{"variant": one["variant"], "setting": picked(one["setting"], ("threads", "cpus", "copies")),
                                      "failure": one["failure"], "trials": cut_trials(one["trials"])} for one in of["cells"]]},
            "recording": cut_recording(report["recording"]), "recording_alone": cut_recording(report["recording_alone"])}


def main(report, name, expected, right, advised=None):
    answer = {"expected": expected, "right": right.split(","), "is_advised": advised == "advised", **cut(json.loads(Path(report).read_text()))}
    text = json.dumps(answer, separators=(",", ":")).replace('{"variant":', '\n{"variant":').replace('"recording', '\n"recording')
    (Path(__file__).parent / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
