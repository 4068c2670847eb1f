# SPDX-License-Identifier: MIT
"""What `freehold doctor --export` writes of a real run, read by others: speedscope's schema, Go's pprof, Python alone.

  exports.py COMMAND SCHEMA

Exit code 77: nothing was recorded here (no probe), so there is nothing to read.
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def check_speedscope(path, schema):
    file = json.loads(path.read_text())
    try:
        import jsonschema
    except ImportError:
        print("no jsonschema: the file is not held against speedscope's schema")
    else:
        jsonschema.validate(file, json.loads(pathlib.Path(schema).read_text()))
    names = {profile["name"]: profile for profile in file["profiles"]}
    assert {"allocations", "bytes", "time", "frees", "remote-frees"} <= names.keys(), names.keys()
    frames = file["shared"]["frames"]
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
    # The example's own code is in the stacks, outermost first.
    stack = max(zip(names["bytes"]["weights"], names["bytes"]["samples"]))[1]
    assert any("doctor.cpp" in frames[frame].get("file", "") for frame in stack), stack
    return {name: sum(profile["weights"]) for name, profile in names.items()}


def check_collapsed(path, total):
    lines = path.read_text().splitlines()
    assert lines == sorted(set(lines))
    weights = [int(line.rpartition(" ")[2]) for line in lines]
    assert all(weight > 0 for weight in weights) and all(line.rpartition(" ")[0] for line in lines)
    assert abs(sum(weights) - total) <= 0.01 * total + len(lines), (sum(weights), total)


def check_pprof(path, total):
    assert gzip.decompress(path.read_bytes())
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        print("no Go: the profile is not read by pprof")
        return
    raw = subprocess.run([go, "tool", "pprof", "-raw", str(path)], capture_output=True, text=True, timeout=60)
    if "no such tool" in raw.stderr:
        print("no pprof in this Go")
        return
    assert raw.returncode == 0, raw.stderr
    head = next(line for line in raw.stdout.splitlines() if "allocations/count" in line)
    assert head.split()[:3] == ["allocations/count", "bytes/bytes", "time/nanoseconds"] or "bytes/bytes" in head, head
    samples = raw.stdout.split("Samples:")[1].split("Locations")[0].splitlines()
    rows = [line.partition(":")[0].split() for line in samples if ":" in line and line.strip()[0].isdigit()]
    counted = sum(int(row[1]) for row in rows if len(row) == 7)
    assert abs(counted - total) <= 0.01 * total + len(rows), (counted, total)


PYTHON_PROGRAM = """
def build_rows(n):
    return [bytearray(2000) for _ in range(n)]
def work():
    for _ in range(60):
        build_rows(400)
work()
"""


def python_with_trampoline():
    """An interpreter that can give its functions machine code of their own (3.12 and later); None: there is none here."""
    for name in ("python3.14", "python3.13", "python3.12", "python3"):
        path = shutil.which(name)
        test = [path, "-c", "import sys; sys.activate_stack_trampoline('perf')"]
        if path and subprocess.run(test, capture_output=True, check=False, timeout=60).returncode == 0:
            return path
    return None


def check_python(command, folder):
    """Python functions are frames by their names, as docs/doctor-export.md says."""
    python = python_with_trampoline()
    if not python:
        print("no Python with a trampoline for perf: its frames are not looked for")
        return
    program, out = folder / "rows.py", folder / "python.txt"
    program.write_text(PYTHON_PROGRAM)
    subprocess.run([command, "doctor", "--repeat", "1", "--allocators", "freehold", f"--export=collapsed:bytes={out}", "--", python,
                    program], env={**os.environ, "PYTHONPERFSUPPORT": "1"}, capture_output=True, text=True, timeout=120, check=True)
    stacks = out.read_text().splitlines()
    rows = [line for line in stacks if "build_rows" in line]
    assert rows, stacks[:5]
    assert all(0 <= line.find("work") < line.find("build_rows") for line in rows), rows
    weight = sum(int(line.rpartition(" ")[2]) for line in rows)
    assert weight > 0.5 * 60 * 400 * 2000, weight  # estimates from samples


def main():
    command, schema = sys.argv[1:]
    example = pathlib.Path(command).parent / "freehold-doctor-example"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [f"--export={kind}={folder / kind.replace(':', '-')}" for kind in ("speedscope", "pprof", "collapsed:bytes")]
        ended = subprocess.run([command, "doctor", "--repeat", "1", "--allocators", "freehold", *files, "--", example, "50000"],
                               capture_output=True, text=True, timeout=120)
        if ended.returncode == 2 and "nothing was recorded" in ended.stderr:
            sys.exit(77)
        assert ended.returncode == 0, ended.stderr
        totals = check_speedscope(folder / "speedscope", schema)
        check_collapsed(folder / "collapsed-bytes", totals["bytes"])
        check_pprof(folder / "pprof", totals["bytes"])
        check_python(command, folder)


main()
