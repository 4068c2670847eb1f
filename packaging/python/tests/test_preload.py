# SPDX-License-Identifier: MIT
"""freehold.preload(): the same program once more, under Freehold's malloc; or a reason why not."""
import os
import pathlib
import shutil
import subprocess
import sys

import freehold
import slow

PROGRAM = """
import os, sys
print("begin")
import freehold
freehold.preload()
freehold.preload()
print(freehold.is_active(), sys.argv, sys.flags.optimize, os.getpid())
"""


def run(*words: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60 * slow.TIMES,
                          **options)  # type: ignore[call-overload, no-any-return]


def program(folder: pathlib.Path, text: str) -> str:
    (folder / "program.py").write_text(text)
    return str(folder / "program.py")


def test_preload_begins_again_in_the_same_process(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path, PROGRAM)
    with subprocess.Popen([sys.executable, "-O", path, "one", "two words"], stdout=subprocess.PIPE, text=True) as child:
        output = child.communicate(timeout=60 * slow.TIMES)[0]
    assert output == f"begin\nbegin\nTrue {[path, 'one', 'two words']} 1 {child.pid}\n"


def test_preload_works_for_modules_and_text(tmp_path: pathlib.Path) -> None:
    program(tmp_path, PROGRAM)
    assert "\nTrue ['-c', 'x'] 0" in run("-c", PROGRAM, "x").stdout
    assert "\nTrue [" in run("-m", "program", "x", cwd=tmp_path).stdout


def test_preload_keeps_environment_and_other_preloads(tmp_path: pathlib.Path) -> None:
    other = shutil.copy(os.path.join(os.path.dirname(freehold.find_malloc()), "libfreehold-pad.so"), tmp_path / "other.so")
    code = "import freehold, os; freehold.preload(); print(os.environ)"
    shown = run("-c", code, env={**os.environ, "LD_PRELOAD": str(other), "MINE": "kept"}).stdout
    assert f"'LD_PRELOAD': '{freehold.find_malloc()}:{other}'" in shown
    assert "'MINE': 'kept'" in shown and "FREEHOLD_PYTHON_PRELOAD" not in shown


def test_preload_objects_takes_small_objects_from_malloc() -> None:
    code = ("import freehold, os, sys; freehold.preload(objects={}); x = [bytes(100) for _ in range(100000)]; "
            "print(os.environ.get('PYTHONMALLOC'), sys._debugmallocstats.__name__)")
    assert run("-c", code.format(True)).stdout.startswith("malloc ")
    assert run("-c", code.format(False)).stdout.startswith("None ")


def test_preload_serves_blocks_of_the_interpreter() -> None:
    code = ("import freehold; freehold.preload(); import ctypes; c = ctypes.CDLL(None); "
            "c.malloc.restype = c.realloc.restype = ctypes.c_void_p; c.free.argtypes = [ctypes.c_void_p]; "
            "c.malloc_usable_size.argtypes = [ctypes.c_void_p]; p = c.malloc(100); "
            "print(c.malloc_usable_size(p)); c.free(p); print(sum(len(bytes(n)) for n in range(0, 1 << 20, 4096)))")
    under, plain = run("-c", code).stdout.split(), run("-c", code.replace("freehold.preload(); ", "")).stdout.split()
    assert under[1] == plain[1] and under[0] != plain[0]  # glibc gives 104 of 100, Freehold's size class another number


def test_preload_refuses_what_it_would_break(tmp_path: pathlib.Path) -> None:
    code = "import freehold; freehold.preload(); print('not reached')"
    from_input = run("-", input=code)
    assert "RuntimeError" in from_input.stderr and "standard input" in from_input.stderr and from_input.stdout == ""
    threads = f"import threading, time; threading.Thread(target=time.sleep, args=({0.5 * slow.TIMES},)).start()\n"
    assert "threads are running" in run("-c", threads + code).stderr
    missing = run("-c", code, env={**os.environ, "FREEHOLD_LIBRARY": "/nosuch/libfreehold.so"})
    assert "FileNotFoundError" in missing.stderr and "/nosuch/libfreehold.so" in missing.stderr
    spaced = tmp_path / "a folder"
    spaced.mkdir()
    copy = shutil.copy(freehold.find_malloc(), spaced)
    assert "space or a colon" in run("-c", code, env={**os.environ, "FREEHOLD_LIBRARY": str(copy)}).stderr


def test_preload_that_has_no_effect_is_an_error_not_a_loop(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "libfreehold.so"
    broken.write_text("no library")
    ended = run("-c", "import freehold; freehold.preload()", env={**os.environ, "FREEHOLD_LIBRARY": str(broken)})
    assert ended.returncode == 1 and "has ignored LD_PRELOAD" in ended.stderr


MALLOC = """
import errno, sys, freehold
freehold.preload()
before = freehold.stats()
freehold.profile_start(4096)
kept = [bytes(100_000) for _ in range(400)]
assert freehold.stats()["run_bytes"] >= before["run_bytes"] + 40_000_000, before
freehold.profile_write(sys.argv[1])
freehold.profile_stop()
del kept
assert freehold.trim() > 0
with freehold.count() as counts:
    kept = bytearray(1 << 20)
    del kept
assert counts["allocations"] >= 1 and counts["freed_bytes"] >= 1 << 20 <= counts["peak_bytes"], counts
with freehold.heap("session") as session:
    kept = bytearray(1 << 20)
assert session.stats()["live_bytes"] >= 1 << 20 and freehold.heap("session") is session
del kept
assert session.stats()["live_bytes"] < 1 << 20 <= session.stats()["peak_bytes"]
try:
    with freehold.heap("small", limit_bytes=1 << 20):
        bytearray(2 << 20)
except MemoryError:
    kept = bytearray(2 << 20)  # this heap alone refuses
    del kept
assert freehold.stats()["run_bytes"] < 40_000_000 and freehold.stats()["threads"] == 1
try:
    freehold.profile_write("/nonexistent/profile")
except FileNotFoundError as error:
    assert error.filename == "/nonexistent/profile" and error.errno == errno.ENOENT
    print("as expected")
"""


def test_malloc_answers_under_freehold_and_refuses_elsewhere(tmp_path: pathlib.Path) -> None:
    profile = tmp_path / "heap.profile"
    done = run(program(tmp_path, MALLOC), str(profile))
    assert (done.stdout, done.stderr) == ("as expected\n", "")
    assert profile.stat().st_size > 0
    plain = run("-c", "import freehold; freehold.stats()", env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"})
    assert plain.stderr.count("RuntimeError: malloc is not Freehold's in this process: call freehold.preload() first") == 1
