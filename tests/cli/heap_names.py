# SPDX-License-Identifier: MIT
"""What `freehold heap` and `freehold stats` say of blocks that scopes of private heaps gave: each by its heap's name, also once
that has ended. The program (programs/named_heaps.cpp) holds known sizes by one call site.

  heap_names.py COMMAND PROGRAM
"""
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from heap_exports import all_of, one_of, samples_of

MIB = 1 << 20
ODD = 'o d"d\n</script>'
HELD = {None: 8 * MIB, "orders": 8 * MIB, ODD: 4 * MIB, "(no name)": 4 * MIB, "gone": 4 * MIB}
REQUESTS = 600 * 8192


def check(held):
    requests = {name: size for name, size in held.items() if name not in HELD}
    for name, size in HELD.items():
        assert abs(held[name] / size - 1) < 0.12, (name, held[name], size)  # some 2,000 samples: a deviation of 2.2%
    assert requests.pop("(one of many heaps)") > REQUESTS / 10, requests
    assert len(requests) > 400 and all(name.startswith("request ") for name in requests), requests


def by_heap(text):
    held = collections.Counter()
    profile = json.loads(text)
    for stack in profile["stacks"]:
        if any(profile["frames"][frame]["function"] == "held_site" for frame in stack["frames"]):
            held[stack.get("heap", "").replace("\\012", "\n") or None] += stack["values"][1]
    return held


def by_label(path):
    profile = gzip.decompress(path.read_bytes())
    strings = [text.decode() for text in all_of(profile, 6)]
    held = collections.Counter()
    for (stack, values), sample in zip(samples_of(profile, strings), all_of(profile, 2)):
        labels = {strings[one_of(label, 1)]: strings[one_of(label, 2)] for label in all_of(sample, 3)}
        held[labels.get("heap")] += values[1] if "held_site" in stack else 0
    return held


def check_stats(run, process):
    """A heap that has ended is a row as long as it has blocks."""
    def row():
        rows = [heap for heap in json.loads(run("stats", "--json", "-", process.pid))["heaps"] if heap["name"].startswith("brief")]
        return rows[0] if rows else None

    ended = row()
    assert ended["name"] == "brief (ended)" and ended["live_objects"] == 100 and ended["live_bytes"] == 100 << 10, ended
    assert 100 << 10 < ended["held_bytes"] < 256 << 10 and ended["used_bytes"] == ended["held_bytes"], ended
    table = run("stats", process.pid)
    assert re.search(r"\n  brief \(ended\) +100 +100 KiB ", table), table
    assert re.search(r'\nfreehold_heap_live_blocks\{pid="\d+",heap="brief \(ended\)"\} 100\n', run("stats", "--prometheus", process.pid))
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "freed\n"
    assert row() is None, row()


def main():
    command, program = sys.argv[1:3]

    def run(*words):
        return subprocess.run([command, *map(str, words)], capture_output=True, text=True, check=True).stdout

    with tempfile.TemporaryDirectory() as scratch:
        recording, converted, page, labelled = (pathlib.Path(scratch) / name for name in ("recording", "json", "html", "pb.gz"))
        environment = {**os.environ, "FREEHOLD_LIVE": "1", "FREEHOLD_PROFILE": "2048", "FREEHOLD_PROFILE_FILE": str(recording)}
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout.readline() == "ready\n"
            check(by_heap(run("heap", "snapshot", "--format", "json", process.pid)))
            run("heap", "snapshot", "--format", "pprof", "--output", labelled, process.pid)
            check(by_label(labelled))
            table = run("heap", "snapshot", "--top", "0", "--html", page, process.pid)
            for name in ("  ", "  heap orders: ", "  heap gone: ", "  heap (no name): "):
                assert name + "held_site" in table, table
            pins = run("heap", "snapshot", "--pins", process.pid)
            assert "heap orders" not in pins, pins  # what its slabs keep free is the heap's, not a page's
            attached = run("doctor", "attach", "--for", "0.2", process.pid)
            assert "heap orders" in attached and "MiB in 8,192 blocks" in attached, attached
            check_stats(run, process)
            process.stdin.close()
        html = page.read_text()
        assert "heap orders: held_site" in html and '"heap orders"' in html
        assert r'"heap o d\"d?\u003c/script>"' in html
        for source in (recording, converted):  # what a process wrote, and JSON that was made of it
            converted.write_text(run("heap", "show", "--format", "json", source))
            check(by_heap(converted.read_text()))
        assert "nothing changed" in run("heap", "diff", recording, converted)


if __name__ == "__main__":
    main()
