# SPDX-License-Identifier: MIT
"""Gains that the doctor predicts for real programs, beside gains that are measured without it. `run.py --gains`.

The treatment that it advises, or Freehold where it advises none, is measured in turns with the program as it is. Both have real-time
priority where that is permitted, as the doctor's own runs have beside others.
"""

import fnmatch
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import cases
import matrix

BENCH = cases.ROOT / "bench" / "inputs"
REAL = cases.ROOT / "tests" / "real" / "inputs"
ROUNDS = 8  # pairs
MOST_SECONDS = 60  # of a run
MAKEFILE = "all: 1 2\n1 2:\n\tg++ -std=c++20 -O0 -c {} -o /dev/null\n"
PERL = "my %h; for my $i (1..700000) { $h{$i % 9973} .= chr(65 + $i % 26); $h{$i} = [$i, \"x$i\"] if $i % 3 == 0 } print scalar keys %h"


def programs(build, folder):
    """{name: words}, of those that are installed."""
    makefile = folder / "Makefile"
    makefile.write_text(MAKEFILE.format(BENCH / "compile.cpp"))
    words_file = folder / "words"
    words_file.write_text("".join(f"{i * 7919 % 300007} {i * 104729 % 299993}\n" for i in range(600000)))
    big = str(build / "bin" / "freehold")
    every = {
        "clang": ["clang++-19", "-std=c++20", "-O0", "-c", BENCH / "compile.cpp", "-o", "/dev/null"],
        "gcc": ["g++", "-std=c++20", "-O1", "-c", REAL / "templates.cpp", "-o", "/dev/null"],
        "git": ["git", "-C", cases.ROOT, "rev-list", "--objects", "--count", "HEAD"],
        "make": ["make", "-s", "-B", "-j2", "-f", makefile],
        "perl": ["perl", "-e", PERL],
        "python": ["/usr/bin/python3", "-I", BENCH / "objects.py"],
        "python_threads": ["/usr/bin/env", "PYTHONMALLOC=malloc", "/usr/bin/python3", REAL / "threads.py"],
        "sqlite": ["sqlite3", "-batch", ":memory:", f".read {BENCH / 'queries.sql'}"],
        "sort": ["sort", "--parallel=2", "-S", "64M", "-k2", words_file],
        "xz": ["xz", "-T2", "-0", "-kc", "--block-size=1MiB", big],
        "z3": ["z3", BENCH / "theorem.smt2"],
        "zstd": ["zstd", "-q", "-T2", "-12", "-c", big],
    }
    return {name: [str(word) for word in words] for name, words in every.items() if shutil.which(words[0])}


def go_before_others():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass


def run_once(words, environment):
    start = time.monotonic()
    ended = subprocess.run(words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=go_before_others, check=False, timeout=MOST_SECONDS)
    if ended.returncode:
        raise cases.CaseError(f"{words[0]} ended with {ended.returncode}")
    return time.monotonic() - start


def measured_gain(words, variant):
    """Ratios of neighbouring runs, ascending: as it is, treated, treated, as it is, and so on."""
    treated = {**variant["environment"], **({"LD_PRELOAD": ":".join(variant["preload"])} if variant["preload"] else {})}
    times = {False: [], True: []}
    for turn in range(-1, ROUNDS):
        for is_treated in ((False, True), (True, False))[turn % 2]:
            taken = run_once(words, treated if is_treated else {})
            if turn >= 0:
                times[is_treated].append(taken)
    return sorted(plain / other for plain, other in zip(times[False], times[True]))


def ask(name, words, build, budget_s, reports):
    """None: no treatment was timed within the budget."""
    report = reports / f"gain-{name}.json"
    ended = subprocess.run([build / "bin" / "freehold", "doctor", "--budget", f"{budget_s:g}s", "--json", report, "--", *words], check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode not in (0, 1):
        raise cases.CaseError(f"{name}: {ended.stderr.strip().splitlines()[-1:]}")
    full = json.loads(report.read_text())
    variants = full["experiment"]["variants"]
    fixes = [fix for fix in full["fixes"] if fix["gain"] and not fix["failed"]]
    best = next((fix for fix in fixes if fix["best"]), None) \
        or next((fix for fix in fixes if variants[fix["variant"]]["treatment"] == "freehold"), None)
    if best is None:
        return None
    ratios = measured_gain(words, variants[best["variant"]])
    gain = best["gain"]
    middle = statistics.median(ratios)
    return {"program": name, "verdict": full["verdict"]["cause"], "treatment": best["text"], "advised": best["best"], "load": round(os.getloadavg()[0]),
            "predicted": [gain["low"], gain["value"], gain["high"]], "measured": [ratios[1], middle, ratios[-2]], "inside": gain["low"] <= middle <= gain["high"]}


def sentence(entries):
    inside = sum(entry["inside"] for entry in entries)
    return f"{inside} of {len(entries)} measured gains lie within the predicted limits."


def as_markdown(command, entries):
    begin, end = matrix.marks("gains")

    def row(entry):
        low, value, high = entry["predicted"]
        least, middle, most = entry["measured"]
        return (f"| {entry['program']} | {entry['verdict']} | {entry['treatment']}{', advised' if entry['advised'] else ''} | {value:.2f} ({low:.2f} to {high:.2f}) "
                f"| {middle:.2f} ({least:.2f} to {most:.2f}) | {'inside' if entry['inside'] else '**outside**'} | {entry['load']} |")

    return "\n".join([begin, f"Written by `{command}`. A gain above 1 is faster. Behind a predicted one are its limits, behind a measured one the ratios of {ROUNDS} "
                      "pairs without the least and the greatest.", "", "| program | verdict | treatment | predicted | measured | | load |", "|---" * 7 + "|",
                      *map(row, entries), "", sentence(entries), end]) + "\n"


def compare(asked):
    entries = []
    asked.programs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="freehold-gains-") as name:
        folder = Path(name)
        for program, words in programs(asked.build, folder).items():
            if not any(fnmatch.fnmatchcase(program, pattern) for pattern in (asked.only or "*").split(",")):
                continue
            entry = ask(program, words, asked.build, asked.budget, asked.programs)
            if entry is None:
                print(f"left out: {program}: no treatment was timed within {asked.budget:g} s", flush=True)
                continue
            entries.append(entry)
            print(json.dumps(entry), flush=True)
    print(sentence(entries))
    if asked.markdown:
        only = [f"--only {asked.only}"] if asked.only else []
        section = as_markdown(" ".join(["script/doctor_blind --gains", f"--budget {asked.budget:g}", *only]), entries)
        asked.markdown.write_text(matrix.put_into(asked.markdown.read_text(), "gains", section))
    return 0
