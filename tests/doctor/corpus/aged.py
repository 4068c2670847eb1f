# SPDX-License-Identifier: MIT
"""How much an aged heap costs: what `freehold doctor --aged` predicts beside what is measured without it. `doctor_corpus --aged`.

Each program does a load that leaves holes in the heap, and then work. Measured: the CPU time of the work after the load, by the CPU time of
the work alone, both told by the program, in turns. Predicted: what the doctor says of a process that only works, with the recorded load as its
history. Under the program's own malloc and under Freehold.
"""

import fnmatch
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import cases
import gains
import harness
import results

PAGE = cases.ROOT / "docs" / "doctor-aged.md"
FOLDER = Path(__file__).resolve().parent / "aged"
ROUNDS = 11
NEAR = 0.15  # that a prediction may be off
RECORDED_BYTES = 1 << 30


def programs(folder):
    """{name: words}, of those that are installed; "{}" stands for the phase."""
    ages = folder / "ages"
    if not ages.exists() or ages.stat().st_mtime < (FOLDER / "ages.cpp").stat().st_mtime:
        cases.compile_to(FOLDER / "ages.cpp", ages)
    every = {f"{load}_{work}": [ages, load, work, "{}"] for load, work in
             (("parse", "list"), ("index", "tree"), ("cache", "table"), ("index", "strings"), ("parse", "messages"), ("cache", "list"), ("index", "table"))}
    every["python"] = ["/usr/bin/env", "PYTHONMALLOC=malloc", "/usr/bin/python3", FOLDER / "ages.py", "{}"]
    every["perl"] = ["perl", FOLDER / "ages.pl", "{}"]
    every["sqlite"] = ["/bin/sh", FOLDER / "ages.sh", "{}"]
    needs = {"perl": "perl", "sqlite": "sqlite3"}
    return {name: [str(word) for word in words] for name, words in every.items() if shutil.which(needs.get(name, "sh"))}


def run(words, phase, environment, may_fail=False):
    ended = subprocess.run([word.replace("{}", phase) for word in words], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=gains.MOST_SECONDS)
    if ended.returncode and not may_fail:
        raise cases.CaseError(f"{words[0]} ended with {ended.returncode}: {ended.stderr.strip()[-200:]}")
    return ended.stdout


def work_seconds(words, phase, environment):
    """By the program's own account: "seconds 0.5", or what SQLite tells of each statement."""
    told = run(words, phase, environment)
    seconds = [float(one) for one in re.findall(r"^seconds ([\d.]+)$", told, re.MULTILINE)]
    seconds += [float(user) + float(system) for user, system in re.findall(r"^Run Time: real \S+ user (\S+) sys (\S+)$", told, re.MULTILINE)]
    if not seconds:
        raise cases.CaseError(f"{words[0]} did not tell how long its work took")
    return sum(seconds)


def measured(words, environment):
    times = {"work": [], "both": []}
    for turn in range(ROUNDS):
        for phase in (("work", "both"), ("both", "work"))[turn % 2]:
            times[phase].append(work_seconds(words, phase, environment))
    return statistics.median(times["both"]) / statistics.median(times["work"])


def recorded(words, build, folder):
    """The file of the load's history: that of the process which allocates the most."""
    run(words, "load", {"LD_PRELOAD": str(build / "libfreehold-probe.so"), "FREEHOLD_PROBE_DIRECTORY": str(folder),
                        "FREEHOLD_PROBE_SAMPLE": "all", "FREEHOLD_PROBE_BYTES": str(RECORDED_BYTES)}, may_fail=True)
    return max(Path(folder).glob("*.trace"), key=lambda file: file.stat().st_size)


def ask(name, words, asked):
    """One entry of the results."""
    entry = {"program": name, "load": round(os.getloadavg()[0]), "rows": []}
    freehold = {"LD_PRELOAD": str(asked.build / "libfreehold.so")}
    with tempfile.TemporaryDirectory(prefix="freehold-aged-") as folder:
        history = recorded(words, asked.build, folder)
        report, told = harness.ask(asked.build / "bin" / "freehold", [f"--aged={history}", "--repeat", str(ROUNDS), "--allocators", "freehold",
                                                                     "--", *(word.replace("{}", "work") for word in words)], 60 * ROUNDS,
                                   keep=asked.programs / f"aged-{name}")
    if not report:
        return {**entry, "left_out": " ".join(told.split())[-200:]}
    entry["mallocs"] = report["history"]["mallocs"]
    for malloc, environment in zip(report["mallocs"], ({}, freehold)):
        if malloc["failure"] or not malloc["ratio"]:
            return {**entry, "left_out": malloc["failure"] or "no trial"}
        ratio, by_hand = malloc["ratio"], measured(words, environment)
        entry["rows"].append({"malloc": malloc["name"], "predicted": [ratio["low"], ratio["value"], ratio["high"]], "measured": by_hand,
                              "near": abs(ratio["value"] / by_hand - 1) <= NEAR})
    return entry


def rows(entry):
    begin = f"| {entry['program']} |"
    if "left_out" in entry:
        return f"{begin} {entry['left_out'].replace('|', '/')} | | | | | {entry['load']} |"
    return "\n".join(f"{begin} {entry['mallocs']:,} | {row['malloc']} | {row['predicted'][1]:.2f} ({row['predicted'][0]:.2f} to {row['predicted'][2]:.2f}) | {row['measured']:.2f} "
                     f"| {'near' if row['near'] else '**off**'} | {entry['load']} |" for row in entry["rows"])


def sentence(entries):
    told = [row for entry in entries for row in entry["rows"] if "left_out" not in entry]
    return f"{sum(row['near'] for row in told)} of {len(told)} predictions are within {NEAR:.0%} of what was measured."


def as_markdown(command, stored):
    return "\n".join([f"Written by `{command}` from runs of {stored['date']} on {stored['machine']}. Figures are CPU time of the work on the aged heap, by that on a "
                      f"fresh one; measured ones are medians of {ROUNDS} runs each, by turns. The load is that before each question.", "",
                      "| program | mallocs of its load | malloc | predicted | measured | | load |", "|---" * 7 + "|", *map(rows, stored["entries"]), "",
                      sentence(stored["entries"])]) + "\n"


def compare(asked):
    entries = []
    asked.programs.mkdir(parents=True, exist_ok=True)
    for name, words in programs(asked.programs).items():
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in (asked.only or "*").split(",")):
            continue
        entries.append(ask(name, words, asked))
        results.write_json(asked.results, {"date": time.strftime("%Y-%m-%d"), "machine": gains.machine(), "entries": entries})
        print(rows(entries[-1]), flush=True)
    print(sentence(entries))
    if asked.markdown:
        results.write_section(PAGE if asked.markdown == results.PAGE else asked.markdown, "aged", as_markdown("script/doctor_corpus --aged", json.loads(asked.results.read_text())))
    return 0
