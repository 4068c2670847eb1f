# SPDX-License-Identifier: MIT
"""The suites: where each comes from, how a test of it is built, which tests are left out and why, which differences are known.

A test is left out if it tests what is not the public API of malloc: calls, statistics or sizes that only its own allocator has.
The first pattern that matches a test's name counts. The folder beside this file that has a suite's name holds what its tests
include, written anew.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# A pair of malloc and free that the compiler knows is none.
NO_BUILTINS = ("-O1", "-fno-builtin", "-w", "-pthread")


@dataclass(frozen=True)
class Known:
    """A test, or one check of it, that fails under Freehold alone, and the reason."""

    test: str
    check: str  # as the test names it, or "" for the whole test
    reason: str


@dataclass(frozen=True)
class Suite:
    name: str
    package: str  # of Debian's sources, or a crate if it has a version
    tests_in: str  # the folder of the tests; of a source package it is all that is unpacked
    globs: tuple  # below it
    version: str = ""  # of the crate
    folder: str = ""  # inside the crate
    options: tuple = ()  # of the compiler; {shims} and {sources} are folders
    instead: dict = field(default_factory=dict)  # test -> the file that is compiled in its place, and includes it
    more: dict = field(default_factory=dict)  # test -> what its command ends with
    arguments: dict = field(default_factory=dict)  # test -> of the program
    cases: dict = field(default_factory=dict)  # test -> arguments that run one part each
    names_checks: bool = False  # a failure prints "FAILED: name"
    left_out: tuple = ()  # (pattern, reason)
    known: tuple = ()

    @property
    def source(self):
        return f"crate {self.package} {self.version}" if self.version else f"Debian's source package {self.package}"

    def tests(self, sources):
        """[(name, file)] in these sources, left-out ones too."""
        found = sorted({file for glob in self.globs for file in (sources / self.tests_in).glob(glob) if file.is_file()})
        return [(self.test_name(file, sources), file) for file in found]

    def runs(self, sources):
        """[(name, file, arguments)]: the same with the parts of tests that are run one by one."""
        for name, file in self.tests(sources):
            for part in self.cases.get(name, ()):
                yield f"{name} {part}", file, (part,)
            if name not in self.cases:
                yield name, file, self.arguments.get(name, ())

    def test_name(self, file, sources):
        """The path below the folder of the tests. A test alone in a folder of its name is named once; a C++ twin of a C file says so."""
        name = file.relative_to(sources / self.tests_in).with_suffix("")
        if name.parent.name == name.name:
            name = name.parent
        return name.as_posix() + ("-cpp" if file.suffix != ".c" and file.with_suffix(".c").exists() else "")

    def why_left_out(self, test):
        return next((reason for pattern, reason in self.left_out if re.search(pattern, test)), None)

    def why_known(self, test, check):
        return next((known.reason for known in self.known if known.test == test and known.check in ("", check)), None)


GLIBC = Suite(
    name="glibc",
    package="glibc",
    tests_in="malloc",
    globs=("tst-*.c", "mallocbug.c"),
    # Names that only a newer libc has come from the library under test, or the test does not start.
    options=("-std=gnu2x", "-D_GNU_SOURCE", "-Werror=implicit-function-declaration",
             "-D__attribute_optimization_barrier__=__attribute__((noinline,noclone))", "-I{shims}", "-I{sources}", "-I{root}",
             "-I{shims}/support", "-rdynamic", "-Wl,--unresolved-symbols=ignore-all"),
    left_out=(
        ("alloc_buffer|dynarray|scratch_buffer", "tests a helper inside libc, not malloc"),
        ("interpose", "brings a malloc of its own, and tests how libc takes it"),
        ("tst-mallocstate", "restores a heap that an old Emacs dumped: malloc_set_state"),
        ("compathooks", "tests hooks that glibc calls no more: __malloc_hook"),
        ("mtrace|-trace$", "traces glibc's malloc with libc_malloc_debug.so"),
        ("tst-malloc-usable", "wants MALLOC_CHECK_=3 to make the usable size the requested one"),
        ("tst-malloc-stats", "wants glibc's words in malloc_stats, which is whole, whether the thread is cancelled or not"),
        ("tst-aligned_alloc-lib", "a library for other tests: wraps aligned_alloc by __libc_malloc"),
        ("tst-tcfree[124]", "wants double frees in glibc's tcache to be seen at once"),
        ("tst-safe-linking", "corrupts the links of glibc's free lists and wants it to be seen"),
        ("tst-malloc-backtrace", "corrupts a chunk's header and wants it to be seen"),
    ),
)

JEMALLOC = Suite(
    name="jemalloc",
    package="jemalloc",
    tests_in="test",
    globs=("integration/**/*.c*", "stress/**/*.c*", "unit/*.c"),
    options=("-I{shims}", "-I{root}"),
    names_checks=True,
    left_out=(
        ("integration/(MALLOCX_ARENA|thread_arena|extent|slab_sizes)$", "sets up jemalloc's arenas and extents by mallctl"),
        ("integration/(allocated|thread_tcache_enabled)$", "reads and sets jemalloc's thread cache by mallctl"),
        ("integration/(mallocx|rallocx|xallocx|smallocx)$", "tests calls that only jemalloc has, beyond what malloc can express"),
        ("infallible_new_true", "tests an option of jemalloc: operator new that aborts"),
        ("stress/", "measures jemalloc's own calls against each other"),
        ("unit/(?!fork$|zero_realloc_free$)", "tests jemalloc's insides, or its statistics and options by mallctl"),
    ),
)

MIMALLOC = Suite(
    name="mimalloc",
    package="mimalloc",
    tests_in="test",
    globs=("*.c", "*.cpp"),
    options=("-I{shims}", "-I{root}"),
    arguments={"test-stress": ("16", "25", "20")},  # threads, load, iterations; by default twice of each and more
    names_checks=True,
    left_out=(
        ("test-wrong", "misuses malloc on purpose, for valgrind to see"),
        ("main-override-static|main-override-dep", "tests mimalloc's heaps, arenas and statistics"),
        ("main-override-cpp", "tests C++ allocators on mimalloc's heaps"),
    ),
)

GPERFTOOLS = Suite(
    name="gperftools",
    package="google-perftools",
    tests_in="src/tests",
    globs=("*.cc", "*.c"),
    options=("-I{shims}", "-I{root}"),
    left_out=(
        ("^frag_", "tests tcmalloc's own statistics and settings"),
        ("^(addressmap|atomicops|getpc|low_level_alloc|packed-cache|page_heap|pagemap|raw_printer|stack|system-alloc)",
         "tests gperftools' insides"),
        ("(heap-checker|heap-profiler|profile|profiledata|profiler|sampler|sampling|stacktrace)", "tests the profilers"),
        ("debugallocation", "tests the debug allocator"),
        ("current_allocated|malloc_extension|markidle", "tests tcmalloc's own statistics and settings"),
        ("malloc_hook", "tests tcmalloc's hooks"),
        ("tcmalloc_unittest", "checks after each call that it called tcmalloc's hooks"),
        ("min_per_thread_cache_size|mmap_hook|proc_maps|safe_strerror|check_address|thread_dealloc_bench", "tests gperftools' insides"),
        ("simple_compat|testutil", "no test of its own"),
    ),
)

ONETBB = Suite(
    name="onetbb",
    package="onetbb",
    tests_in="test/tbbmalloc",
    globs=("*.cpp", "*.c"),
    options=("-I{shims}", "-I{root}"),
    left_out=(
        ("whitebox|pools|regression|scalable_allocator", "tests tbbmalloc's insides, its memory pools, or its C++ allocators"),
        ("overload", "looks for tbbmalloc's header in front of each block"),
        ("atexit|lib_unload|used_by_lib|init_shutdown|shutdown_hang", "tests how tbbmalloc's libraries are loaded and unloaded"),
    ),
)

RPMALLOC = Suite(
    name="rpmalloc",
    package="rpmalloc-sys",
    version="0.2.3",
    folder="rpmalloc",
    tests_in="test",
    globs=("main*.c", "main*.cc"),
    options=("-D_GNU_SOURCE", "-I{shims}", "-I{sources}/test", "-I{root}"),
    instead={"main": "{shims}/run_part.c"},
    more={"main": ("{sources}/test/thread.c",), "main-override": ("-x", "c", "{sources}/test/thread.c", "-x", "none")},
    cases={"main": ("alloc", "realloc", "superalign", "crossthread", "threaded", "threadspam", "heaps", "large_pages", "error")},
    left_out=(
        ("^main alloc$", "wants rpmalloc's size classes from malloc_usable_size"),
        ("^main heaps$", "tests rpmalloc's heaps"),
        ("^main large_pages$", "sets rpmalloc's page size"),
        ("^main error$", "wants rpmalloc to report leaks"),
    ),
)

SNMALLOC = Suite(
    name="snmalloc",
    package="snmalloc-sys",
    version="0.7.6",
    folder="upstream",
    tests_in="src/test",
    globs=("func/*/*.cc", "perf/*/*.cc"),
    # SNMALLOC_USE_WAIT_ON_ADDRESS is what its own build sets.
    options=("-std=c++20", "-mcx16", "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1", "-I{shims}", "-I{sources}/src", "-I{root}"),
    left_out=(
        ("func/(bits|redblack|seqset|pool|pagemap|freelist_mpscq|sizeclass|release-rounding|cheri|client_meta|domestication)",
         "tests snmalloc's insides"),
        ("func/(external_pagemap|fixed_region|fls_teardown|miracle_ptr|sandbox|thread_alloc_external|corruption_detection)",
         "tests snmalloc's insides"),
        ("func/(two_alloc_types|dll_teardown)", "tests two snmallocs in one program"),
        ("func/(multi_setspecific|multi_atexit|multi_threadatexit)", "defines calloc and free on snmalloc"),
        ("func/protect_fork", "tests a class of snmalloc's that holds fork back"),
        ("func/teardown|perf/post_teardown", "ends the thread's allocator in the middle of the thread"),
        ("func/(func-memcpy|memcpy)|perf/memcpy", "tests a memcpy that checks bounds"),
        ("func/(stats|statistics|memory_usage)", "tests snmalloc's statistics"),
        ("func/jemalloc", "tests jemalloc's calls in snmalloc"),
        ("perf/(external|low_memory|msgpass)", "measures snmalloc's own calls"),
    ),
)

SUITES = (GLIBC, JEMALLOC, MIMALLOC, GPERFTOOLS, ONETBB, RPMALLOC, SNMALLOC)
