#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compiles the public headers of an installed Freehold as a user's build does: a warning is an error.

  header_matrix.py INSTALL_PREFIX WORK_FOLDER [LAUNCHER]

First, include/freehold holds the public headers and `detail`, nothing else. Then, in Debug and in Release, with GCC and with
Clang, as C++20 and as C++23, and the C headers as C11 and as C17: every header alone, and all of them together with the programs
of project/ as one source. The latter becomes an object file, since some warnings come from the generating of code only. The
program is linked and run once for each compiler. As C++17 every C++ header says first which standard it needs. LAUNCHER is a ccache,
or nothing.
"""
import concurrent.futures
import pathlib
import subprocess
import sys

COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang-19", "clang++-19")}
MODES = {"Debug": ["-O0", "-g"], "Release": ["-O2", "-DNDEBUG"]}
STANDARDS = {"c": ["c11", "c17"], "cpp": ["c++20", "c++23"]}
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Werror"]
PARTS = ["process", "timer", "heap", "thread_alloc", "alloc", "pool", "profile", "slots", "check", "sync", "os", "base"]
PROJECT = pathlib.Path(__file__).resolve().parent / "project"
# Freehold's malloc is not linked here.
NOT_TOGETHER = {"active.c", "active.cpp", "scope.c", "scope.cpp", "unmentioned.c"}


def public_headers():
    """The headers directly under freehold/ are the interface."""
    return sorted(header.name for header in (PROJECT.parents[2] / "freehold").glob("*.h*"))


def together(headers, suffix):
    """One source of all headers and of all programs of project/ that are written in its language."""
    programs = [file for file in sorted(PROJECT.glob(f"*.{suffix}")) if file.name not in NOT_TOGETHER]
    lines = ["#define _POSIX_C_SOURCE 200809L"] if suffix == "c" else []
    lines += [f'#include "freehold/{header}"' for header in headers]
    for i, file in enumerate(programs):
        lines += [f"#define main main_{i}", f'#include "{file}"', "#undef main"]
    calls = " || ".join(f"main_{i}()" for i in range(len(programs)))
    return "\n".join([*lines, f"int main({'void' if suffix == 'c' else ''}) {{ return {calls}; }}", ""])


def write_sources(work, headers):
    """The sources, each with what it is for a reader of a failure."""
    sources = []
    for suffix in STANDARDS:
        mine = [header for header in headers if suffix == "cpp" or header.endswith(".h")]
        for header in mine:
            file = work / f"{header.replace('.', '_')}_alone.{suffix}"
            file.write_text(f'#include "freehold/{header}"\nint main({"void" if suffix == "c" else ""}) {{ return 0; }}\n', encoding="utf-8")
            sources.append((file, False))
        file = work / f"together.{suffix}"
        file.write_text(together(mine, suffix), encoding="utf-8")
        sources.append((file, True))
    return sources


def commands(prefix, work, headers, launcher):
    for file, is_together in write_sources(work, headers):
        suffix = file.suffix[1:]
        for compiler, both in COMPILERS.items():
            for mode, optimisation in MODES.items():
                for standard in STANDARDS[suffix]:
                    command = [both[suffix == "cpp"], f"-std={standard}", *optimisation, *WARNINGS, f"-I{prefix}/include", "-pthread"]
                    command += ["-Wpedantic"] if suffix == "c" else []
                    if is_together:
                        result = work / f"{file.name}-{compiler}-{mode}-{standard}.o"
                        command = [*launcher, *command, "-c", str(file), "-o", str(result)]
                    else:
                        command += ["-fsyntax-only", str(file)]
                    yield f"{file.name}, {compiler}, {mode}, {standard}", command


def link_and_run(prefix, work):
    library = next(prefix.rglob("libfreehold_base.a")).parent
    for suffix, standards in STANDARDS.items():
        for compiler, both in COMPILERS.items():
            program = work / f"together.{suffix}-{compiler}"
            parts = [f"-l:libfreehold_{part}.a" for part in PARTS if (library / f"libfreehold_{part}.a").exists()]
            object_file = f"{work}/together.{suffix}-{compiler}-Debug-{standards[0]}.o"
            extra = ["-lfreehold_process", f"-Wl,-rpath,{library}"] if suffix == "c" else []
            yield f"{program.name}, link", [both[suffix == "cpp"], object_file, "-o", str(program), f"-L{library}", *extra, *parts, "-pthread"]
            yield f"{program.name}, run", [str(program)]


def run(what, command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return f"{what} failed:\n  {' '.join(command)}\n{done.stdout}" if done.returncode else None


def too_old(prefix, work, headers):
    """The first complaint about C++17, where it is not the one that helps."""
    for header in headers:
        if header.endswith(".h"):
            continue
        for compiler, both in COMPILERS.items():
            command = [both[1], "-std=c++17", f"-I{prefix}/include", "-fsyntax-only", str(work / f"{header.replace('.', '_')}_alone.cpp")]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            first = next((line for line in done.stderr.splitlines() if "error: " in line), "none")
            if "Freehold needs C++20" not in first:
                yield f"{header}, {compiler}, c++17: the first error is: {first}"


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    prefix, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    launcher = [word for word in sys.argv[3:] if word]
    headers = public_headers()
    laid = sorted(entry.name for entry in (prefix / "include" / "freehold").iterdir())
    if laid != sorted([*headers, "detail"]):
        print(f"include/freehold holds\n  {laid}\nand should hold\n  {sorted([*headers, 'detail'])}")
        return 1
    work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(run, *job) for job in commands(prefix, work, headers, launcher)]
        failures = [job.result() for job in jobs if job.result()]
    failures += too_old(prefix, work, headers)
    if not failures:
        failures = [failure for failure in (run(*job) for job in link_and_run(prefix, work)) if failure]
    print("\n".join(failures) if failures else f"{len(jobs)} compilations of {len(headers)} public headers without a warning")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
