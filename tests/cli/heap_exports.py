# SPDX-License-Identifier: MIT
"""What `freehold heap` writes for pprof, read by others: a decoder of protocol buffers that shares nothing with the writer, and Go's
pprof where it is installed. Both must say what the JSON says.

  heap_exports.py COMMAND PROGRAM
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        yield key >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def all_of(message, number):
    return [value for field, value in fields(message) if field == number]


def one_of(message, number, otherwise=0):
    return (all_of(message, number) or [otherwise])[0]


def samples_of(profile, strings):
    """(functions, innermost first; values) of each sample."""
    functions = {one_of(f, 1): strings[one_of(f, 2)] for f in all_of(profile, 5)}
    locations = {one_of(l, 1): functions[one_of(one_of(l, 4), 1)] for l in all_of(profile, 4)}
    for sample in all_of(profile, 2):
        yield [locations[number] for number in packed(one_of(sample, 1, b""))], packed(one_of(sample, 2))


def check_pprof(path, wanted):
    profile = gzip.decompress(path.read_bytes())
    strings = [text.decode() for text in all_of(profile, 6)]
    assert strings[0] == ""
    types = [strings[one_of(kind, 1)] for kind in all_of(profile, 1)]
    assert types == ["inuse_objects", "inuse_space", "peak_objects", "peak_space"], types
    units = [strings[one_of(kind, 2)] for kind in all_of(profile, 1)]
    assert units == ["count", "bytes", "count", "bytes"], units
    assert strings[one_of(profile, 14)] == "inuse_space"
    assert one_of(profile, 12) == 16384 and strings[one_of(one_of(profile, 11), 1)] == "space"
    for field in (3, 4, 5):  # mappings, locations, functions
        numbers = [one_of(message, 1) for message in all_of(profile, field)]
        assert 0 not in numbers and len(numbers) == len(set(numbers)), "numbers are not unique"
    held = {}
    for stack, values in samples_of(profile, strings):
        assert len(values) == 4
        for name in set(stack):
            held[name] = held.get(name, 0) + values[1]
    for name, size in wanted.items():
        assert abs(held[name] - size) < 0.001 * size + 1000, (name, held[name], size)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        print("no Go: its pprof was not asked")
        return
    # Newer Go builds its pprof at the first call: into the user's cache, so that the next one finds it.
    cache = os.environ.get("GOCACHE") or str(pathlib.Path.home() / ".cache" / "go-build")
    top = subprocess.run([go, "tool", "pprof", "-top", "-unit=bytes", "-nodecount=100", str(path)], capture_output=True, text=True,
                         env={**os.environ, "HOME": str(path.parent), "PPROF_TMPDIR": str(path.parent), "GOCACHE": cache}, check=False)
    if "no such tool" in top.stderr:
        print("no pprof in this Go")
        return
    assert top.returncode == 0, top.stderr
    assert "Type: inuse_space" in top.stdout and "small_site" in top.stdout, top.stdout


def main():
    command, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        recording = folder / "sites.heap"
        environment = {**os.environ, "FREEHOLD_PROFILE": "16384", "FREEHOLD_PROFILE_FILE": str(recording)}
        subprocess.run([command, "run", "--", program], env=environment, check=True, stdout=subprocess.DEVNULL)
        made = {}
        for kind in ("json", "pprof"):
            made[kind] = folder / kind
            subprocess.run([command, "heap", "show", "--format", kind, "--output", str(made[kind]), str(recording)], check=True)
        profile = json.loads(made["json"].read_text())
        wanted = {}
        for stack in profile["stacks"]:
            for name in {profile["frames"][frame]["function"] for frame in stack["frames"]}:
                if name.endswith("_site") and stack["values"][1] > 0:
                    wanted[name] = wanted.get(name, 0) + stack["values"][1]
        assert len(wanted) == 8, wanted
        check_pprof(made["pprof"], wanted)
        diff = folder / "diff.pb.gz"
        subprocess.run([command, "heap", "diff", "--format", "pprof", "--output", str(diff), str(recording), str(recording)], check=True)
        assert gzip.decompress(diff.read_bytes())
    print("both formats say the same")


if __name__ == "__main__":
    sys.exit(main())
