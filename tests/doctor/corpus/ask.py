# SPDX-License-Identifier: MIT
"""Asks the doctor about one case, says what its answer is worth, and measures by hand, without the doctor, what is true of this machine."""

import os
import re
import statistics
import subprocess
import time

import harness

PRELOADS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}
# Causes by which threads disturb each other through the hardware. Some machines bear them: two hardware threads of one core share its caches.
BORNE_BY_SOME = ("allocator-false-sharing", "own-sharing", "memory-bandwidth")
BORNE_FROM = 1.85  # times as fast with two threads as with one
SHARE_WITHIN = 0.2  # of the share that is the allocator's, where a case measures it


def run_once(case, command, threads, preload=None):
    """Wall, user's and kernel's time of one run, the peak of memory in MiB, and what it printed."""
    words = [word.replace("{n}", str(threads)) for word in (*command, *case.arguments)]
    environment = dict(os.environ, **{name: value.replace("{n}", str(threads)) for name, value in case.environment.items()})
    if preload:
        environment["LD_PRELOAD"] = preload
    if "{n}" not in " ".join(case.arguments) and not case.variable:
        words = ["taskset", "-c", ",".join(map(str, range(threads))), *words]
    start = time.monotonic()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{case.name}: ended with {process.returncode}")
    return time.monotonic() - start, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024, printed


def speedup(case, command, times=3):
    """How many times as fast two threads are as one: the least of some runs each, in turn."""
    runs = [[run_once(case, command, threads)[0] for threads in (1, 2)] for _ in range(times)]
    return min(run[0] for run in runs) / min(run[1] for run in runs)


def true_share(case, command, times=5):
    """Of what two threads lose, the share of the part whose seconds the program prints first."""
    runs = [[list(map(float, run_once(case, command, threads)[4].split())) for threads in (1, 2)] for _ in range(times)]
    lost = [max(statistics.median(run[1][part] for run in runs) - statistics.median(run[0][part] for run in runs) / 2, 0) for part in (0, 1)]
    return lost[0] / max(sum(lost), 1e-9)


def by_hand(case, command, times):
    """Prints one line: how a case scales, where its CPU time is, and what other mallocs change."""
    runs = {}
    for _ in range(times):
        for name, threads, preload in (("one", 1, None), ("two", 2, None), *((name, 2, file) for name, file in PRELOADS.items())):
            runs.setdefault(name, []).append(run_once(case, command, threads, preload))
    least = {name: min(values) for name, values in runs.items()}
    wall, user, system, peak, _ = least["two"]
    print(f"{case.name:27} {wall:5.2f} s  2 threads {least['one'][0] / wall:.2f} times as fast as 1, {(user + system) / wall:.1f} CPUs busy, kernel "
          f"{system / max(user + system, 1e-9):.0%}; against glibc: {', '.join(f'{name} {wall / least[name][0]:.2f}' for name in PRELOADS)}; {peak:.0f} MiB", flush=True)


def words_for(case, program, budget_s, ahead_of_others=False):
    """The doctor's arguments, as docs/doctor.md says that they should be."""
    words = ["--budget", f"{budget_s:g}s", *(["--ahead-of-others"] if ahead_of_others else [])]
    if case.is_("memory"):
        words.append("--memory")
    elif case.variable:
        words += ["--threads", "1,2", "--env", case.variable]
    elif "{n}" in case.arguments:
        words += ["--threads", "1,2"]
    return [*words, "--", *program, *case.arguments]


def verdict_term(verdict):
    """The cause, with + or - after `mixed`: whether it blames the allocator."""
    if verdict["cause"] != "mixed":
        return verdict["cause"]
    return "mixed+" if verdict["blames_allocator"] else "mixed-"


def judge(case, verdict, is_borne=False, share=None):
    """`right`, `undecided` or `wrong`; and whether the allocator was blamed in vain. `is_borne`: this machine bears the cause. `share`: the
    allocator's of the loss, as measured by hand."""
    term, lost = verdict_term(verdict), verdict["lost"]["value"] if verdict.get("lost") else 0
    in_vain = bool(verdict["blames_allocator"]) and not case.may_blame_allocator
    if any(re.search(text, verdict["headline"]) for text in case.all_of("unsaid")):
        return "wrong", in_vain
    if term == "undecided" and not in_vain:
        is_right = any(one.term == term for one in case.right)
        return "right" if is_right else "undecided", in_vain
    is_right = not in_vain and any(one.term == term and (one.most_lost is None or lost < one.most_lost) for one in case.right)
    if share is not None and is_right:
        is_right = abs(verdict["allocator_share"]["value"] - share) <= SHARE_WITHIN
    return "right" if is_right or (is_borne and term == "none") else "wrong", in_vain


def ask(case, doctor, program, budget_s, by_hand=None, ahead_of_others=False, keep=None, tries=1):
    """One entry of the results. `by_hand`: what measured_by_hand() said, without neighbours; they would take what the second thread needs. An
    answer that is undecided is asked for again, up to `tries` times in all; a wrong one is wrong: it is what a user would have believed."""
    speedup_by_hand, share = by_hand or (None, None)
    entry = {"case": case.name, "origin": case.origin, "load": round(os.getloadavg()[0], 1), "truth": case.truth, "changed": case.changed,
             "right": [one.term for one in case.right], "speedup_by_hand": speedup_by_hand and round(speedup_by_hand, 2),
             "borne": speedup_by_hand is not None and speedup_by_hand >= BORNE_FROM}
    started = time.monotonic()
    for tried in range(1, tries + 1):
        full, told = harness.ask(doctor, words_for(case, program, budget_s, ahead_of_others), 6 * budget_s + 60, keep and keep / case.name, case.quota,
                                 {**os.environ, **case.fixed_environment})
        if not full:
            answer = {"verdict": "failed", "judgement": "failed", "in_vain": False, "headline": " ".join(told.split())}
        else:
            verdict = full["verdict"]
            judgement, in_vain = judge(case, verdict, entry["borne"], share)
            answer = {"verdict": verdict_term(verdict), "judgement": judgement, "in_vain": in_vain, "headline": verdict["headline"],
                      "lost": verdict.get("lost") and verdict["lost"]["value"], "busy": verdict.get("doubt") == "busy-machine"}
        if answer["judgement"] in ("right", "wrong"):
            break
    return {**entry, "seconds": round(time.monotonic() - started, 1), "tries": tried, **answer}


def measured_by_hand(case, program):
    """What a machine may bear, and the share of a loss, which differs from machine to machine."""
    return (speedup(case, program) if case.truth in BORNE_BY_SOME else None, true_share(case, program) if case.is_("parts") else None)
