# SPDX-License-Identifier: MIT
"""Builds a test, and runs it under one malloc or the other."""
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass

from .catalog import HERE, NO_BUILTINS, ROOT

SKIPPED = 77  # a test's exit code: not possible here
# What a program needs to have Freehold's malloc inside: freehold/malloc/CMakeLists.txt.
ARCHIVES = ("malloc", "alloc", "pool", "os", "base")
REFER = ("-Wl,--undefined=malloc", "-Wl,--undefined=freehold_is_active")
CHECK_NAMES = re.compile(r"FAILED: ([\w-]+)")


class NotBuilt(Exception):
    """The compiler's first error."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: what failed (names of checks, or the end of the program), and its last words."""

    failed: frozenset
    text: str = ""

    @property
    def passed(self):
        return not self.failed

    @property
    def skipped(self):
        return self.failed == {"skipped"}


def static_libraries(library):
    """The archives of the build that the shared library belongs to, or None."""
    found = [library.resolve().parent / "freehold" / part / f"libfreehold_{part}.a" for part in ARCHIVES]
    return found if all(file.is_file() for file in found) else None


def command(suite, test, source, sources, program, archives):
    """The one call of a compiler that makes the program; with archives: one that is wholly static."""
    places = {"shims": HERE / suite.name, "sources": sources, "root": ROOT}
    if test in suite.instead:
        source = suite.instead[test].format(**places)
    compiler = os.environ.get("CC", "gcc") if str(source).endswith(".c") else os.environ.get("CXX", "g++")
    options = [option.format(**places) for option in suite.options]
    more = [option.format(**places) for option in suite.more.get(test, ())]
    if archives:
        options = [option for option in options if "unresolved-symbols" not in option]
        more += ["-static", *REFER, "-Wl,--start-group", *archives, "-Wl,--end-group"]
    return [str(word) for word in (compiler, *NO_BUILTINS, *options, source, *more, "-o", program)]


def newest(folder):
    return max((file.stat().st_mtime for file in folder.rglob("*") if file.is_file()), default=0)


def build(suite, test, source, sources, folder, archives=None):
    """The program, which is built if it is not there or is older than what it is made of. Raises NotBuilt."""
    program = folder / suite.name / (test.replace("/", "_") + (".static" if archives else ""))
    words = command(suite, test, source, sources, program, archives)
    stamp = program.with_name(program.name + ".command")
    made_of = max([newest(HERE / suite.name), (HERE / "reallocarr.h").stat().st_mtime, source.stat().st_mtime, *[file.stat().st_mtime for file in archives or ()]])
    if program.exists() and stamp.exists() and stamp.read_text() == "\n".join(words) and program.stat().st_mtime > made_of:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise NotBuilt((errors or done.stderr.splitlines() or ["?"])[0].replace(str(sources) + "/", ""))
    stamp.write_text("\n".join(words))
    return program


def expected_signal(source):
    """glibc's way to say that a test must end by a signal."""
    found = re.search(r"#\s*define\s+EXPECTED_SIGNAL\s+(SIG\w+)", source.read_text(errors="replace"))
    return getattr(signal, found[1]).value if found else 0


def run(program, arguments, library, seconds, wanted_signal=0, names_checks=False):
    """Runs the program in an empty folder, under a preloaded library or, without one, as it is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "FREEHOLD_", "GLIBC_TUNABLES"))}
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = str(library.resolve())
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([program.resolve(), *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
                                   errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Outcome(frozenset({"time"}), f"not ended within {seconds} s")
    return outcome(process.returncode, output, wanted_signal, names_checks)


def outcome(code, output, wanted_signal, names_checks):
    if code == (-wanted_signal if wanted_signal else 0):
        return Outcome(frozenset())
    if code == SKIPPED:
        return Outcome(frozenset({"skipped"}), "not possible here")
    end = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    checks = CHECK_NAMES.findall(output) if names_checks and code > 0 else []
    if checks:
        return Outcome(frozenset(checks), ", ".join(dict.fromkeys(checks)))
    wanted = [line for line in lines if re.search("fail|error|not true|wrong|corrupt|assert", line, re.IGNORECASE)]
    return Outcome(frozenset({end}), f"{end}: {(wanted or lines or ['no output'])[-1][:160]}")


def active(library):
    """Does the preloaded library say that it is Freehold? Every process that allocates prints that line."""
    environment = {**os.environ, "LD_PRELOAD": str(library.resolve()), "FREEHOLD_VERBOSE": "1"}
    done = subprocess.run(["sh", "-c", "true"], env=environment, capture_output=True, text=True, check=False)
    return "freehold: active" in done.stderr
