# SPDX-License-Identifier: MIT
"""What Freehold's malloc says of this process, and what it can be asked to do: the functions of freehold/malloc.h.

RuntimeError in each function where malloc is not Freehold's: see preload(). OSError: as the C function's errno says.
"""
import contextlib
import ctypes
import os
from typing import Any, Iterator

from freehold._preload import is_active

_COUNTS = (  # begin rows: script/check_tables --draw
    "reserved_bytes", "committed_bytes", "small_span_bytes", "run_bytes", "direct_bytes", "retained_bytes", "metadata_bytes",
    "cached_limit_bytes", "purged_bytes", "purge_calls", "span_claims", "span_returns", "lock_waits", "threads", "peak_threads",
    "late_frees",
    # end rows
)


class _Stats(ctypes.Structure):
    """freehold_stats_t as far as it is numbers; the library fills what both know."""

    _fields_ = [("size", ctypes.c_size_t), ("version", ctypes.c_uint32), ("class_count", ctypes.c_uint32),
                *((name, ctypes.c_uint64) for name in _COUNTS), ("cpus", ctypes.c_uint32)]


def _library() -> Any:
    if not is_active():
        raise RuntimeError("malloc is not Freehold's in this process: call freehold.preload() first, or start it by "
                           "`python -m freehold run`")
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, path: "str | None" = None) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def stats() -> "dict[str, int]":
    """The statistics of this process: bytes, and counts since its start, by the names of freehold_stats_t in freehold/malloc.h."""
    figures = _Stats()
    _checked(_library().freehold_stats(ctypes.byref(figures), ctypes.c_size_t(ctypes.sizeof(figures))))
    return {name: getattr(figures, name) for name in (*_COUNTS, "cpus")}


_COUNTED = ("allocations", "frees", "allocated_bytes", "freed_bytes", "peak_bytes")


class _Count(ctypes.Structure):
    """freehold_count_t."""

    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_uint64) for name in _COUNTED)]


@contextlib.contextmanager
def count() -> "Iterator[dict[str, int]]":
    """Counts exactly what this thread allocates and frees by malloc in a block; the dictionary has the figures after it.

    with freehold.count() as counts:
        work()
    assert counts["allocations"] <= 3

    Python takes its small objects from pools of its own, which allocate now and then: PYTHONMALLOC=malloc shows each of them.
    """
    library, figures = _library(), _Count()
    counts: "dict[str, int]" = {}
    size = ctypes.c_size_t(ctypes.sizeof(figures))
    end, into = library.freehold_count_end, ctypes.byref(figures)
    _checked(library.freehold_count_begin(0))
    try:
        yield counts
    finally:
        _checked(end(into, size))
        counts.update((name, getattr(figures, name)) for name in _COUNTED)


def trim() -> int:
    """Gives free memory back to the system; returns the bytes that went back."""
    function = _library().freehold_trim
    function.restype = ctypes.c_size_t
    return int(function())


def profile_start(distance: int = 0) -> None:
    """Begins a sampled heap profile, or goes on with one. Blocks that exist already are not in it.

    distance  mean distance of samples in bytes; 0 for 512 KiB
    """
    if distance < 0:
        raise ValueError("distance must be 0 or more bytes")
    _checked(_library().freehold_profile_start(ctypes.c_size_t(distance)))


def profile_stop() -> None:
    """Takes no further samples; blocks that are sampled stay in the profile until they are freed."""
    _library().freehold_profile_stop()


def profile_write(path: "str | os.PathLike[str]") -> None:
    """Writes the heap profile as it is now to a file, which `freehold heap show` reads; "%p" in the name becomes the process's number."""
    _checked(_library().freehold_profile_write(os.fsencode(path)), os.fspath(path))
