# SPDX-License-Identifier: MIT
"""Gains that the doctor predicts for real programs, beside gains that are measured without it. `doctor_corpus --gains`.

The treatment that it advises, or Freehold where it advises none, is measured in turns with the program as it is. Both have real-time
priority with --ahead-of-others, where that is permitted, as the doctor's own runs have then. All answers and
ratios go to a file after each program, so that an interrupted run loses one.
"""

import fnmatch
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import cases
import harness
import results

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


def run_once(words, environment, prepare):
    start = time.monotonic()
    ended = subprocess.run(words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=prepare, check=False, timeout=MOST_SECONDS)
    if ended.returncode:
        raise cases.CaseError(f"{words[0]} ended with {ended.returncode}")
    return time.monotonic() - start


def measured_ratios(words, variant, prepare):
    """Ratios of neighbouring runs, ascending: as it is, treated, treated, as it is, and so on."""
    treated = {**variant["environment"], **({"LD_PRELOAD": ":".join(variant["preload"])} if variant["preload"] else {})}
    times = {False: [], True: []}
    for turn in range(-1, ROUNDS):
        for is_treated in ((False, True), (True, False))[turn % 2]:
            taken = run_once(words, treated if is_treated else {}, prepare)
            if turn >= 0:
                times[is_treated].append(taken)
    return sorted(plain / other for plain, other in zip(times[False], times[True]))


def predicted_fix(report):
    """The treatment that the report advises, else Freehold; None: neither was timed within the budget."""
    fixes = [fix for fix in report["fixes"] if fix["gain"] and not fix["failed"]]
    variants = report["experiment"]["variants"]
    return next((fix for fix in fixes if fix["best"]), None) or next((fix for fix in fixes if variants[fix["variant"]]["treatment"] == "freehold"), None)


def limits(ratios):
    """The least and the greatest of ascending ratios; without the outermost two where three or more are left."""
    kept = ratios[1:-1] if len(ratios) >= 5 else ratios
    return kept[0], kept[-1]


def compared(fix, ratios):
    """The part of an entry that says what was predicted, what was measured, and whether the one is within the limits of the other."""
    gain, middle, (least, most) = fix["gain"], statistics.median(ratios), limits(ratios)
    return {"treatment": fix["text"], "advised": fix["best"], "predicted": [gain["low"], gain["value"], gain["high"]],
            "measured": [least, middle, most], "ratios": ratios, "inside": gain["low"] <= middle <= gain["high"]}


def ask(name, words, asked):
    """One entry of the results."""
    ahead = ["--ahead-of-others"] if asked.ahead_of_others else []
    entry = {"program": name, "load": round(os.getloadavg()[0])}
    report, told = harness.ask(asked.build / "bin" / "freehold", ["--budget", f"{asked.budget:g}s", *ahead, "--", *words], 6 * asked.budget + 60,
                               keep=asked.programs / f"gain-{name}")
    if not report:
        return {**entry, "verdict": "failed", "left_out": " ".join(told.split())[-200:]}
    entry["verdict"] = report["verdict"]["cause"]
    fix = predicted_fix(report)
    if fix is None:
        return {**entry, "left_out": f"no treatment was timed within {asked.budget:g} s"}
    try:
        ratios = measured_ratios(words, report["experiment"]["variants"][fix["variant"]], go_before_others if asked.ahead_of_others else None)
    except (cases.CaseError, subprocess.TimeoutExpired) as problem:
        return {**entry, "left_out": str(problem)}
    return {**entry, **compared(fix, ratios)}


def sentence(entries):
    told = [entry for entry in entries if "left_out" not in entry]
    silent = [entry["program"] for entry in entries if "left_out" in entry]
    return f"{sum(entry['inside'] for entry in told)} of {len(told)} measured gains lie within the predicted limits" + \
        (f"; without both: {', '.join(silent)}." if silent else ".")


def row(entry):
    begin = f"| {entry['program']} | {entry['verdict']} |"
    if "left_out" in entry:
        return f"{begin} {entry['left_out'].replace('|', '/')} | | | | {entry['load']} |"
    low, value, high = entry["predicted"]
    least, middle, most = entry["measured"]
    return (f"{begin} {entry['treatment']}{', advised' if entry['advised'] else ''} | {value:.2f} ({low:.2f} to {high:.2f}) "
            f"| {middle:.2f} ({least:.2f} to {most:.2f}) | {'inside' if entry['inside'] else '**outside**'} | {entry['load']} |")


def as_markdown(command, stored):
    return "\n".join([f"Written by `{command}` from runs of {stored['date']} on {stored['machine']}; the load is that before each question. A gain above 1 "
                      f"is faster. Behind a predicted one are its limits, behind a measured one the ratios of {ROUNDS} pairs without the least and the greatest.",
                      "", "| program | verdict | treatment | predicted | measured | | load |", "|---" * 7 + "|", *map(row, stored["entries"]), "",
                      sentence(stored["entries"])]) + "\n"


def machine():
    """What the timings depend on, in words; no name of the host."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.+)$", info.read_text() if info.exists() else "", re.MULTILINE)
    release = ".".join(platform.release().split(".")[:2])
    return f"{model[1].strip() if model else platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, {platform.system()} {release}, {' '.join(platform.libc_ver())}"


def stored_results(asked):
    """Of an earlier run with the same budget, for --resume and --rewrite."""
    if not asked.results.exists():
        return {"entries": []}
    stored = json.loads(asked.results.read_text())
    if stored["budget_s"] != asked.budget:
        raise cases.CaseError(f"{asked.results} was made with a budget of {stored['budget_s']:g} s; use the same, or another file with --results")
    return stored


def ask_all(asked):
    entries = stored_results(asked)["entries"] if asked.resume else []
    done = {entry["program"] for entry in entries}
    asked.programs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="freehold-gains-") as name:
        chosen = {program: words for program, words in programs(asked.build, Path(name)).items()
                  if any(fnmatch.fnmatchcase(program, pattern) for pattern in (asked.only or "*").split(","))}
        for place, (program, words) in enumerate(chosen.items(), 1):
            if program in done:
                continue
            entries.append(ask(program, words, asked))
            results.write_json(asked.results, {"schema": "freehold-gains/1", "date": time.strftime("%Y-%m-%d"), "machine": machine(), "budget_s": asked.budget,
                                               "rounds": ROUNDS, "entries": entries})
            print(f"[{place}/{len(chosen)}] {row(entries[-1])}", flush=True)


def compare(asked):
    if not asked.rewrite:
        ask_all(asked)
    stored = stored_results(asked)
    if not stored["entries"]:
        raise cases.CaseError(f"{asked.results} has no answers; ask without --rewrite, or about other programs")
    print(sentence(stored["entries"]))
    if asked.markdown:
        command = f"script/doctor_corpus --gains --budget {asked.budget:g}" + (f" --only {asked.only}" if asked.only else "")
        results.write_section(asked.markdown, "gains", as_markdown(command, stored))
    return 0
