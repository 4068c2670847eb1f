# SPDX-License-Identifier: MIT
"""What `freehold doctor --pprof` writes of a real run, read by a decoder that shares nothing with the writer, and by Go's pprof.

  exports.py COMMAND

Exit code 77: nothing was recorded here (no probe), so there is nothing to read.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from heap_exports import all_of, one_of, samples_of  # noqa: E402

BYTES = 1  # place among the measures


def decoded(path):
    """(functions, innermost first; values) of each sample, and the files that its functions are in."""
    profile = gzip.decompress(path.read_bytes())
    strings = [text.decode() for text in all_of(profile, 6)]
    types = [strings[one_of(kind, 1)] for kind in all_of(profile, 1)]
    assert types == ["allocations", "bytes", "time", "frees", "remote-frees", "lock-waits", "idleness"], types
    assert strings[one_of(profile, 14)] == "time"
    return list(samples_of(profile, strings)), {strings[one_of(function, 4)] for function in all_of(profile, 5)}


def check_pprof(path):
    samples, files = decoded(path)
    assert any("doctor.cpp" in file for file in files), files  # the example's own code is in the stacks
    total = sum(values[BYTES] for _, values in samples)
    assert all(len(values) == 7 for _, values in samples) and total > 0, samples[:3]
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        print("no Go: the profile is not read by pprof")
        return
    raw = subprocess.run([go, "tool", "pprof", "-raw", str(path)], capture_output=True, text=True, timeout=60)
    if "no such tool" in raw.stderr:
        print("no pprof in this Go")
        return
    assert raw.returncode == 0, raw.stderr
    rows = raw.stdout.split("Samples:")[1].split("Locations")[0].splitlines()
    rows = [line.partition(":")[0].split() for line in rows if ":" in line and line.strip()[0].isdigit()]
    counted = sum(int(row[BYTES]) for row in rows if len(row) == 7)
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
    """Python functions are frames by their names, as docs/doctor.md says."""
    python = python_with_trampoline()
    if not python:
        print("no Python with a trampoline for perf: its frames are not looked for")
        return
    program, out = folder / "rows.py", folder / "python.pb.gz"
    program.write_text(PYTHON_PROGRAM)
    subprocess.run([command, "doctor", "--repeat", "1", "--allocators", "freehold", "--pprof", out, "--", python, program],
                   env={**os.environ, "PYTHONPERFSUPPORT": "1"}, capture_output=True, text=True, timeout=120, check=True)
    samples, _ = decoded(out)
    rows = [(";".join(reversed(stack)), values) for stack, values in samples if any("build_rows" in name for name in stack)]
    assert rows, samples[:5]
    assert all(0 <= stack.find("work") < stack.find("build_rows") for stack, _ in rows), rows
    weight = sum(values[BYTES] for _, values in rows)
    assert weight > 0.5 * 60 * 400 * 2000, weight  # estimates from samples


def main():
    (command,) = sys.argv[1:]
    example = pathlib.Path(command).parent / "freehold-doctor-example"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ended = subprocess.run([command, "doctor", "--repeat", "1", "--allocators", "freehold", "--pprof", folder / "p.pb.gz", "--", example,
                                "50000"], capture_output=True, text=True, timeout=120)
        if ended.returncode == 2 and "nothing was recorded" in ended.stderr:
            sys.exit(77)
        assert ended.returncode == 0, ended.stderr
        check_pprof(folder / "p.pb.gz")
        check_python(command, folder)


main()
