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


class _HeapOptions(ctypes.Structure):
    """freehold_heap_options_t."""

    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("waits", ctypes.c_int), ("name", ctypes.c_char_p),
                ("limit_bytes", ctypes.c_size_t), ("on_limit", ctypes.c_void_p), ("on_limit_context", ctypes.c_void_p),
                ("binds_node", ctypes.c_int), ("node", ctypes.c_int)]


_HEAP_COUNTS = ("live_objects", "live_bytes", "used_bytes", "held_bytes", "limit_bytes", "slabs", "large_blocks", "conflicts", "peak_bytes")


class _HeapStats(ctypes.Structure):
    """freehold_heap_stats_t."""

    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), *((name, ctypes.c_uint64) for name in _HEAP_COUNTS)]


class Heap:
    """A private heap. In a `with` block of it every malloc of this thread, in whatever library, takes its memory from the heap.

    Blocks may be freed anywhere. No `await` and no `yield` in the block: another task would run in it. heap() makes one.
    """

    def __init__(self, name: str, limit_bytes: int) -> None:
        self._library, self._name, self.limit_bytes = _library(), name.encode(), limit_bytes
        self._library.freehold_heap_create.restype = ctypes.c_void_p
        options = _HeapOptions(size=ctypes.sizeof(_HeapOptions), name=self._name, limit_bytes=limit_bytes)
        heap = self._library.freehold_heap_create(ctypes.byref(options))
        _checked(0 if heap else -1)
        self._heap = ctypes.c_void_p(heap)

    def __enter__(self) -> "Heap":
        _checked(self._library.freehold_heap_enter(self._heap))
        return self

    def __exit__(self, *_: object) -> None:
        self._library.freehold_heap_leave()

    def stats(self) -> "dict[str, int]":
        """Figures of the heap: bytes and counts, by the names of freehold_heap_stats_t in freehold/heap.h."""
        figures = _HeapStats()
        _checked(self._library.freehold_heap_stats(self._heap, ctypes.byref(figures), ctypes.c_size_t(ctypes.sizeof(figures))))
        return {name: getattr(figures, name) for name in _HEAP_COUNTS}


_heaps: "dict[str, Heap]" = {}


def heap(name: str, limit_bytes: int = 0) -> Heap:
    """The private heap of this name, which lives as long as the process.

    with freehold.heap("numbers"):
        table = numpy.zeros(1_000_000)
    freehold.heap("numbers").stats()["live_bytes"]

    Python takes objects up to 512 bytes from pools of its own: PYTHONMALLOC=malloc has all of them in the heap. MemoryError in
    the block if the limit is reached.

    limit_bytes  of what the heap uses, when its name comes for the first time; 0: no limit
    """
    if limit_bytes < 0:
        raise ValueError("limit_bytes must be 0 or more bytes")
    if name not in _heaps:
        _heaps[name] = Heap(name, limit_bytes)
    return _heaps[name]


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
