# SPDX-License-Identifier: MIT
"""The probe points otel_memory:alloc and otel_memory:free, as a tracer hears them: gdb listens by the script of docs/heap-profile.md.

A listener that keeps what was told and not yet freed must hold what the process itself writes into its profile: the same samples, the
same bytes. By size they must come to what the program says it holds, within five standard errors of the estimate.

  heap_probes.py COMMAND LIBRARY PROGRAM PAGE

Exit code: 77 if gdb is not installed, or may not trace a program here.
"""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DISTANCE = 262144
ERRORS = 5  # standard errors: one run in a million and a half is that far off by chance, each
OTHER_BYTES = 1 << 20  # tables of pointers, that are freed, and the buffers of standard output


class Listener:
    """What a tracer knows: {address: (bytes, weighted bytes)} of what is in use, and how often it was told what."""

    def __init__(self):
        self.live = {}
        self.allocs = self.frees = 0

    def hear(self, line):
        words = line.split()
        if words[:1] == ["alloc"] and len(words) == 4:
            block, size, weighted = map(int, words[1:])
            assert block not in self.live, f"told twice without a free between: {line}"
            assert block != 0 and block % 16 == 0, f"no address of a block: {line}"
            assert weighted >= size > 0, f"stands for less than itself: {line}"
            self.live[block] = size, weighted
            self.allocs += 1
        elif words[:1] == ["free"] and len(words) == 2:
            assert self.live.pop(int(words[1]), None), f"freed, but never told of, or twice: {line}"
            self.frees += 1


def script_of(page, library, settings):
    """The gdb script of the page, with the paths of this run."""
    found = re.search(r"```gdb\n(.*?)```", page.read_text(), re.DOTALL)
    assert found, f"{page} has no script for gdb"
    lines = []
    for line in found[1].splitlines():
        line = re.sub(r"LD_PRELOAD .*", f"LD_PRELOAD {library}", line)
        if line.startswith("set environment FREEHOLD_PROFILE "):
            lines += [f"set environment {name} {value}" for name, value in settings.items()]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def listen(library, page, folder, words, **settings):
    """The listener, what the program wrote, and what gdb says of the probes in the end."""
    script = folder / "listen.gdb"
    script.write_text(script_of(page, library, settings) + "info probes stap otel_memory\n")
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", script, "--args", *words], cwd=folder, capture_output=True,
                          text=True, timeout=240, check=False, env={**os.environ, "DEBUGINFOD_URLS": ""})
    assert re.search(r"exited normally", done.stdout), done.stdout[-2000:] + done.stderr
    listener = Listener()
    for line in done.stdout.splitlines():
        listener.hear(line)
    return listener, done.stdout


def refusal_to_trace():
    """Why gdb cannot run a program that we did not build: containers may forbid ptrace(). None: it can."""
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "run", "--args", "/bin/true"], capture_output=True, text=True,
                          timeout=240, check=False, env={**os.environ, "DEBUGINFOD_URLS": ""})
    return None if re.search(r"exited normally", done.stdout) else "gdb may not trace: " + (done.stderr.strip() or done.stdout)


def known(told):
    """{size: bytes in use}, from "site blocks bytes"."""
    sums = {}
    for blocks, total in re.findall(r"^\w+_site (\d+) (\d+)$", told, re.MULTILINE):
        size = int(total) // int(blocks)
        sums[size] = sums.get(size, 0) + int(total)
    return sums


def check_held(listener, told, command, file):
    sums = known(told)
    assert sums, told
    for size, total in sums.items():
        weights = [weighted for bytes_, weighted in listener.live.values() if bytes_ == size]
        # Of a sample with the probability p = b / w, that stands for w bytes: its variance is w^2 (1 - p).
        error = math.sqrt(sum(weighted * (weighted - size) for weighted in weights))
        print(f"{size} bytes: {total} in use, {sum(weights)} heard of from {len(weights)} samples, error {error:.0f}")
        assert len(weights) >= 40, "too few samples to say anything"
        assert abs(sum(weights) - total) <= ERRORS * error, f"{size}: {sum(weights)} heard of, {total} in use"
    others = sum(weighted for bytes_, weighted in listener.live.values() if bytes_ not in sums)
    assert others <= OTHER_BYTES, f"{others} bytes of sizes that nobody asked for"
    shown = subprocess.run([command, "heap", "show", "--format", "json", file], capture_output=True, text=True, check=True)
    in_use = json.loads(shown.stdout)["in_use"]
    assert len(listener.live) == in_use["samples"], (len(listener.live), in_use)
    heard = sum(weighted for _, weighted in listener.live.values())
    assert abs(heard - in_use["bytes"]) <= len(listener.live), (heard, in_use)  # each is rounded down


def main():
    command, library, program, page = (pathlib.Path(word) for word in sys.argv[1:5])
    if shutil.which("gdb") is None:
        print("gdb is not installed")
        return 77
    if (refusal := refusal_to_trace()) is not None:
        print(refusal)
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        file = folder / "told.heap"
        on = {"FREEHOLD_PROFILE": DISTANCE, "FREEHOLD_PROFILE_FILE": file}
        listener, told = listen(library, page, folder, [program], **on)
        assert listener.frees > 50, f"only {listener.frees} were freed"
        check_held(listener, told, command, file)
        # A point each, and no semaphore: nobody has to switch them on.
        points = re.findall(r"^stap otel_memory (\w+) +0x[0-9a-f]+ +(\S+)", told, re.MULTILINE)
        assert [name for name, _ in points] == ["alloc", "free"], told[-500:]
        assert all(pathlib.Path(where).name.startswith("libfreehold.so") for _, where in points), points

        # Resized where they are: freed with the old size, allocated with the new one.
        listener, told = listen(library, page, folder, [program, "resized"], **on)
        check_held(listener, told, command, file)

        # No profile: nothing to hear, although somebody listens.
        listener, told = listen(library, page, folder, [program, "resized"], FREEHOLD_PROFILE=0)
        assert known(told) and listener.allocs == listener.frees == 0, (listener.allocs, listener.frees)
    return 0


if __name__ == "__main__":
    sys.exit(main())
