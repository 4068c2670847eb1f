# SPDX-License-Identifier: MIT
"""Asks the doctor about one case and says what its answer is worth."""

import os
import re
import time

import byhand
from cases import harness


def words_for(case, program, budget_s, ahead_of_others):
    """The doctor's arguments, as docs/doctor.md says that they should be."""
    words = ["--budget", f"{budget_s}s", *(["--ahead-of-others"] if ahead_of_others else [])]
    if case.asks_memory:
        return [*words, "--memory", "--", *program, *case.arguments]
    if case.variable:
        words += ["--threads", "1,2", "--env", case.variable]
    elif "{n}" in case.arguments:
        words += ["--threads", "1,2"]
    return [*words, "--", *program, *case.arguments]


def verdict_term(verdict):
    """The cause, with + or - after `mixed`: whether it blames the allocator."""
    if verdict["cause"] != "mixed":
        return verdict["cause"]
    return "mixed+" if verdict["blames_allocator"] else "mixed-"


# Causes by which threads disturb each other through the hardware. Some machines bear them: two hardware threads of one core share its caches.
BORNE_BY_SOME = ("allocator-false-sharing", "own-sharing", "memory-bandwidth")
BORNE_FROM = 1.85  # times as fast with two threads as with one


def speedup_by_hand(case, program):
    """Two threads against one, if a machine may bear the case's cause; none otherwise."""
    return byhand.speedup(case, program) if case.truth in BORNE_BY_SOME else None


def judge(case, verdict, is_borne=False):
    """`right`, `undecided` or `wrong`; and whether the allocator was blamed in vain. `is_borne`: this machine bears the cause."""
    term, lost = verdict_term(verdict), verdict["lost"]["value"] if verdict.get("lost") else 0
    in_vain = bool(verdict["blames_allocator"]) and not case.may_blame_allocator
    if case.unsaid and re.search(case.unsaid, verdict["headline"]):
        return "wrong", in_vain
    if is_borne and term == "none":
        return "right", in_vain
    if not in_vain and any(c.term == term and (c.most_lost is None or lost < c.most_lost) for c in case.right):
        return "right", in_vain
    return ("undecided" if term == "undecided" and not in_vain else "wrong"), in_vain


def ask(case, doctor, program, budget_s, speedup, ahead_of_others=False):
    """One entry of the results. `speedup`: by hand, without neighbours; they would take what the second thread needs."""
    entry = {"case": case.name, "load": round(os.getloadavg()[0], 1), "language": case.language, "truth": case.truth, "changed": case.changed, "right": [c.term for c in case.right], "budget_s": budget_s}
    entry["speedup_by_hand"] = speedup and round(speedup, 2)
    entry["borne"] = speedup is not None and speedup >= BORNE_FROM
    started = time.monotonic()
    full, told = harness.ask(doctor, words_for(case, program, budget_s, ahead_of_others), 6 * budget_s + 60, cpus=case.quota,
                             environment={**os.environ, **case.fixed_environment})
    entry["seconds"] = round(time.monotonic() - started, 1)
    if not full:
        return {**entry, "verdict": "failed", "judgement": "failed", "in_vain": False, "headline": " ".join(told.split())}
    verdict = full["verdict"]
    judgement, in_vain = judge(case, verdict, entry["borne"])
    gains = [[fix["text"], round(fix["gain"]["value"], 2)] for fix in full["fixes"] if fix.get("gain") and not fix["failed"]]
    return {**entry, "verdict": verdict_term(verdict), "judgement": judgement, "in_vain": in_vain, "headline": verdict["headline"],
            "lost": verdict.get("lost") and verdict["lost"]["value"], "noisy": verdict.get("noisy"), "best_gain": gains[:1]}
