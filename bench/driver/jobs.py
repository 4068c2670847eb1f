# SPDX-License-Identifier: MIT
"""`script/bench jobs`: a command for each argument by `freehold workers --exec`, `xargs -P` and GNU parallel."""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SHORT, LONG = "true", "sleep 0.1"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="script/bench jobs", description=__doc__)
    parser.add_argument("--build", default="build/release", help="folder with bin/freehold")
    parser.add_argument("--short", type=int, default=10_000, help="jobs that do nothing")
    parser.add_argument("--long", type=int, default=100, help="jobs of 0.1 s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time")
    parser.add_argument("--rounds", type=int, default=3, help="each program once, in turn")
    return parser.parse_args(arguments)


def candidates(options):
    """Name, and the command for a job; each reads its arguments from standard input."""
    jobs = str(options.jobs)
    rows = [("freehold workers --exec", lambda job: [f"{options.build}/bin/freehold", "workers", "--workers", jobs, "--exec", job + " # {}"]),
            ("xargs -P, a shell for each job", lambda job: ["xargs", "-P", jobs, "-I{}", "/bin/sh", "-c", job + " # {}"])]
    if shutil.which("parallel"):
        rows.append(("GNU parallel", lambda job: ["parallel", "--will-cite", "-j", jobs, job + " # {}"]))
    else:
        print("GNU parallel is not installed (script/bootstrap peers), and is left out", file=sys.stderr)
    return rows


def run(command, count):
    """Seconds, and seconds of user and system time, of the children, too."""
    with tempfile.TemporaryFile("w+") as arguments:
        arguments.writelines(f"{i}\n" for i in range(count))
        arguments.seek(0)
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, stdin=arguments, stdout=subprocess.DEVNULL, check=True)
        seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def version(program):
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()
    return text[0] if text else program


def main(arguments):
    options = parse(arguments)
    if not os.path.exists(f"{options.build}/bin/freehold"):
        print(f"script/bench jobs: no {options.build}/bin/freehold: build it, or name a folder with --build", file=sys.stderr)
        return 2
    rows = candidates(options)
    figures = {}
    for _ in range(options.rounds):
        for name, command in rows:
            for job, count in ((SHORT, options.short), (LONG, options.long)):
                if count:
                    figures.setdefault((name, job), []).append(run(command(job), count))
    programs = [f"{options.build}/bin/freehold", "xargs"] + ["parallel"] * (len(rows) == 3)
    print("; ".join(version(program) for program in programs) + f"; {options.jobs} at a time, medians of {options.rounds}, "
          f"load {re.sub(',.*', '', str(os.getloadavg())[1:])} at the end\n")
    print(f"| | {options.short} × `{SHORT}` | user and system | {options.long} × `{LONG}` | user and system |\n|---|---|---|---|---|")
    for name, _ in rows:
        cells = []
        for job in (SHORT, LONG):
            times = figures.get((name, job), [(0, 0)])
            cells += [f"{statistics.median(t[0] for t in times):.2f} s", f"{statistics.median(t[1] for t in times):.2f} s"]
        print(f"| {name} | {' | '.join(cells)} |")
    return 0
