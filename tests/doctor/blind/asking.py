# SPDX-License-Identifier: MIT
"""Asks the doctor about one case and says what its answer is worth."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import byhand
import cases


def command_for(case, doctor, program, budget_s, report):
    """The command line, as docs/doctor.md says that it should be."""
    words = [str(doctor), "doctor", "--json", str(report), "--budget", f"{budget_s}s"]
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


@contextlib.contextmanager
def quota_group(cpus):
    """A control group whose members get so many CPUs; gives the file that its members are written to. It goes at the end."""
    folder = cases.quota_folder() / f"freehold-blind-{os.getpid()}"
    folder.mkdir()
    try:
        if (folder / "cpu.cfs_quota_us").exists():
            (folder / "cpu.cfs_period_us").write_text("100000")
            (folder / "cpu.cfs_quota_us").write_text(str(int(cpus * 100_000)))
        else:
            (folder / "cpu.max").write_text(f"{int(cpus * 100_000)} 100000")
        yield folder / "cgroup.procs"
    finally:
        for _ in range(50):  # the last member's end may not have been accounted yet
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def run_doctor(case, words, timeout_s):
    environment = dict(os.environ, **case.fixed_environment)
    with contextlib.ExitStack() as stack:
        members = stack.enter_context(quota_group(case.quota)) if case.quota else None

        def join_group():
            if members:
                members.write_text(str(os.getpid()))

        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, preexec_fn=join_group)
        try:
            _, said = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # the doctor ends what it started
            process.communicate()
            return None, f"did not end within {timeout_s:.0f} s"
    return process.returncode, (said.strip().splitlines() or [""])[-1]


def ask(case, doctor, program, budget_s):
    """One entry of the results."""
    entry = {"case": case.name, "load": round(os.getloadavg()[0], 1), "language": case.language, "truth": case.truth, "right": [c.term for c in case.right], "budget_s": budget_s}
    speedup = speedup_by_hand(case, program)
    entry["speedup_by_hand"] = speedup and round(speedup, 2)
    entry["borne"] = speedup is not None and speedup >= BORNE_FROM
    with tempfile.TemporaryDirectory(prefix="freehold-blind-") as folder:
        report = Path(folder) / "report.json"
        started = time.monotonic()
        status, said = run_doctor(case, command_for(case, doctor, program, budget_s, report), 6 * budget_s + 60)
        entry["seconds"] = round(time.monotonic() - started, 1)
        if status not in (0, 1) or not report.exists():
            return {**entry, "verdict": "failed", "judgement": "failed", "in_vain": False, "headline": f"exit {status}: {said}"}
        full = json.loads(report.read_text())
    verdict = full["verdict"]
    judgement, in_vain = judge(case, verdict, entry["borne"])
    gains = [[fix["text"], round(fix["gain"]["value"], 2)] for fix in full["fixes"] if fix.get("gain") and not fix["failed"]]
    return {**entry, "verdict": verdict_term(verdict), "judgement": judgement, "in_vain": in_vain, "headline": verdict["headline"],
            "lost": verdict.get("lost") and verdict["lost"]["value"], "noisy": verdict.get("noisy"), "best_gain": gains[:1]}
