# SPDX-License-Identifier: MIT
"""Runs what other allocators' own tests say of the public API: under libfreehold.so, and under the system's malloc for comparison.

The sources of the tests come from Debian's source packages and from crates. They are kept below a cache folder, where the tests
are built against the system's headers and against headers of ours in tests/suites. A test that fails under Freehold alone is a
defect, or a known difference with its reason. Exit code: 0 no defect, 1 a defect or a test that cannot be built, 2 bad usage,
and with --ctest 77 if no suite can be had.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys

from . import catalog, programs, sources, table

SKIPPED = 77


def refuse(reason):
    print(f"script/suites: {reason}", file=sys.stderr)
    raise SystemExit(2)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        refuse(f"{message}; --help lists the options")


def parse(words):
    names = [suite.name for suite in catalog.SUITES]
    parser = Parser(prog="script/suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"all, or some of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="name the tests, and those left out with the reasons; run nothing")
    parser.add_argument("--only", metavar="TEXT", help="only tests whose suite/name contains this")
    parser.add_argument("--cache", type=pathlib.Path, default=catalog.ROOT / "build/suites", metavar="FOLDER", help="of sources and programs; build/suites")
    parser.add_argument("--offline", action="store_true", help="fetch nothing: run what the cache has")
    parser.add_argument("--sources", action="append", default=[], metavar="SUITE=FOLDER", help="a suite's sources that are there already")
    parser.add_argument("--library", type=pathlib.Path, default=catalog.ROOT / "build/release/libfreehold.so")
    parser.add_argument("--static", action="store_true", help="run each test linked statically, too")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS", help="for each run of a test; 180")
    parser.add_argument("--ctest", action="store_true", help="end with 77 if no suite can be had")
    options = parser.parse_args(words)
    check(options, names)
    return options


def check(options, names):
    if unknown := [name for name in options.suites if name not in names]:
        refuse(f"no such suite: {', '.join(unknown)}; there are {', '.join(names)}")
    if not options.timeout > 0:
        refuse("--timeout wants a number of seconds above 0")
    options.given = dict(text.partition("=")[::2] for text in options.sources)
    for name, folder in options.given.items():
        suite = next((suite for suite in catalog.SUITES if suite.name == name), None)
        if suite is None:
            refuse(f"--sources {name}=…: no such suite; there are {', '.join(names)}")
        if not suite.tests(pathlib.Path(folder)):
            refuse(f"--sources {name}={folder}: there are no {suite.tests_in}/{suite.globs[0]}; name the root of its sources")
    try:
        options.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"--cache {options.cache}: {error.strerror}")
    if not os.access(options.cache, os.W_OK):
        refuse(f"--cache {options.cache}: no right to write there")
    if not options.list:
        check_library(options)


def check_library(options):
    if not options.library.is_file():
        refuse(f"no {options.library}: build it (cmake --build --preset release), or name one with --library")
    if not programs.active(options.library):
        refuse(f"{options.library} is not Freehold's: a program under it does not print 'freehold: active' for FREEHOLD_VERBOSE=1")
    if options.static and programs.static_libraries(options.library) is None:
        refuse(f"--static: no archives beside {options.library}: build all of the preset (cmake --build --preset release)")


def find_tests(options, view):
    """[Test] of the suites that can be had; the others are named with the reason."""
    cache = sources.Cache(options.cache, options.offline, view.progress)
    tests = []
    for suite in catalog.SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        if options.only and options.only.startswith(tuple(f"{other.name}/" for other in catalog.SUITES if other is not suite)):
            continue  # asks for another suite: fetch no other
        try:
            given = options.given.get(suite.name)
            folder = pathlib.Path(given).resolve() if given else cache.sources(suite).resolve()
        except sources.Missing as reason:
            view.missing(suite, reason)
            continue
        view.found(suite, given or cache.version(suite))
        tests += [table.Test(suite, name, file, folder, arguments) for name, file, arguments in suite.runs(folder)]
    return tests


def build_all(tests, options, view):
    """{(test, static): program or NotBuilt}"""
    archives = programs.static_libraries(options.library) if options.static else None
    work = [(test, kind) for test in tests for kind in ([None, archives] if archives else [None])]
    built = {}

    def build(item):
        test, kind = item
        try:
            return programs.build(test.suite, test.program, test.file, test.sources, options.cache / "programs", kind)
        except programs.NotBuilt as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        unique = {(test.suite.name, test.program, bool(kind)): (test, kind) for test, kind in work}
        for count, (key, result) in enumerate(zip(unique, pool.map(build, unique.values())), 1):
            built[key] = result
            view.progress(f"built {count} of {len(unique)}")
    return built


def run_test(test, built, options):
    """The test's row: [(malloc, outcome)], or the reason why there is none."""
    program = built[test.suite.name, test.program, False]
    if isinstance(program, programs.NotBuilt):
        return table.not_built(test, program)
    wanted = programs.expected_signal(test.file)

    def run(what, library):
        return programs.run(what, test.arguments, library, options.timeout, wanted, test.suite.names_checks)

    theirs, ours, ours_static = run(program, None), run(program, options.library), None
    static = built.get((test.suite.name, test.program, True))
    if static is not None and not isinstance(static, programs.NotBuilt):
        ours_static = run(static, None)
    return table.row(test, theirs, ours, ours_static, static)


def main(words):
    options = parse(words)
    view = table.View(options)
    tests = find_tests(options, view)
    if options.only:
        tests = [test for test in tests if options.only in test.full_name]
    if not view.versions:
        view.progress("")
        print("script/suites: skipped: no suite can be had")
        return SKIPPED if options.ctest else 0
    if not tests:
        refuse(f"--only {options.only}: no test's suite/name contains that; --list names them")
    if options.list:
        view.list(tests)
        return 0
    chosen = [test for test in tests if not test.why_left_out]
    if not chosen:
        refuse(f"--only {options.only}: all such tests are left out; --list says why")
    built = build_all(chosen, options, view)
    view.head()
    for count, test in enumerate(chosen, 1):
        view.progress(f"{count} of {len(chosen)}: {test.full_name}")
        view.row(run_test(test, built, options))
    return view.summary(tests)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
