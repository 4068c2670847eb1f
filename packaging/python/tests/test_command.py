# SPDX-License-Identifier: MIT
"""python -m freehold, and the script `freehold`: the command with its arguments, streams and exit statuses."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import freehold
import slow

MODULE = [sys.executable, "-m", "freehold"]
SCRIPT = [os.path.join(os.path.dirname(sys.executable), "freehold")]


def run(*words: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, timeout=120 * slow.TIMES,
                          **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("command", [MODULE, SCRIPT], ids=["module", "script"])
def test_command_version_and_status(command: "list[str]") -> None:
    assert run(*command, "--version").stdout.startswith("freehold ")
    assert run(*command, "run", "--", "sh", "-c", "exit 7").returncode == 7


def test_run_replaces_malloc_of_the_program() -> None:
    code = "import freehold; print(freehold.is_active())"
    assert run(*MODULE, "run", "--", sys.executable, "-c", code).stdout == "True\n"
    assert run(sys.executable, "-c", code).stdout == "False\n"


def test_run_signals_and_pipes_are_those_of_the_program() -> None:
    assert run(*MODULE, "run", "--", "sh", "-c", "kill -TERM $$").returncode == -15
    # Python ignores SIGPIPE; what it becomes must not.
    ended = run("sh", "-c", '"$@" yes | head -n 1', "sh", *MODULE, "run", "--")
    assert (ended.stdout, ended.stderr) == ("y\n", "")


@pytest.mark.parametrize("words", [["nosuch"], ["run", "--nosuch"], ["doctor", "--budget", "x"], []])
def test_bad_arguments_are_one_line_and_status_2(words: "list[str]") -> None:
    ended = run(*MODULE, *words)
    assert ended.returncode == 2
    assert ended.stdout == "" and ended.stderr.startswith("freehold") and ended.stderr.count("\n") == 1


def test_heap_is_the_commands_own_answer() -> None:
    direct = run(freehold.find_command(), "heap", "--help")
    passed = run(*MODULE, "heap", "--help")
    assert (passed.returncode, passed.stdout, passed.stderr) == (direct.returncode, direct.stdout, direct.stderr)


def test_command_that_is_not_there_is_one_line_and_status_2(tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for path in (tmp_path / "nosuch", plain):
        ended = run(*MODULE, "--version", env={"FREEHOLD_COMMAND": str(path)})
        assert ended.returncode == 2 and ended.stderr.count("\n") == 1 and str(path) in ended.stderr


def test_doctor_records_with_its_libraries(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.json"
    program = ["--", "true"] if slow.TIMES > 1 else []  # or the bundled example, which takes longer than that under an emulator
    ended = run(*MODULE, "doctor", "--budget", str(6 * slow.TIMES), "--allocators", "freehold", "--json", str(report), *program)
    assert ended.returncode == 0, ended.stderr
    names = {variant["name"] for variant in json.loads(report.read_text())["experiment"]["variants"]}
    assert any("freehold" in name for name in names)
