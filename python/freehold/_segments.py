# SPDX-License-Identifier: MIT
"""Large values between a program and its workers: segments of one memory file, which has no name that a kill -9 could leave.

A value is copied into a segment once, and read where it lies: an array that supports pickle's out-of-band buffers is made of the
segment's memory, and the segment is used again when the last such array is gone. What would outlive its call in a worker, or meets a
fork, gets pages of its own at the same address (Lease.detach). The program alone hands segments out, so a worker that dies loses none.

Invariant: a segment has one value at a time, and one side that reads or writes it: the program, or the worker that runs the call.
Threads: any in the program; a worker has one. Nothing that a garbage collection may call (Lease.__del__) takes a lock.
"""
import _thread
import ctypes
import fcntl
import itertools
import os
import pickle
import sys
import time
import weakref
from collections import deque

TYPE_CHECKING = False  # typing's, for a checker; workers start faster without that module
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Place = tuple[int, int]  # offset and length, in bytes

APART = 1 << 20  # bytes from which a buffer, or a whole pickle, goes into a segment; below, it goes through the pool's table
SPAN = 1 << 40  # bytes from one segment to the next; pages that are not used do not exist
START = 0  # the segment with what workers start with
_ALIGNMENT, _ROUNDING = 64, 2 << 20  # of a value's parts, and of mappings: a segment serves values of about one size
_KEPT_SECONDS = 1.0  # for which a free segment keeps its pages, as the pool's table does
_KEPT_MAPPINGS = 8  # of segments, in a worker
_READ_AND_WRITE, _SHARED, _PRIVATE, _FIXED, _POPULATE_WRITE = 3, 1, 2, 16, 23
_PUNCH_HOLE = 3
# os and fcntl have these only where Python was compiled with new headers.
_CLOSE_ON_EXEC, _ALLOW_SEALING, _ADD_SEALS, _SIZE_SEALS = 1, 2, 1033, 7

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

_lent: "dict[int, weakref.ref[Lease]]" = {}


def dumps(value: object) -> "tuple[bytes, list[memoryview]]":
    """The pickle of a value, and its large buffers, which are not in it."""
    buffers: "list[memoryview]" = []

    def is_inside(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < APART:
            return True
        buffers.append(raw)
        return False
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=is_inside), buffers


def places_of(parts: "Iterable[bytes | memoryview]", begin: int = 0) -> "tuple[list[Place], int]":
    """Where the parts of a value lie in its segment, and where it ends."""
    places = []
    for part in parts:
        places.append((begin, len(part)))
        begin += -(-len(part) // _ALIGNMENT) * _ALIGNMENT
    return places, begin


class Lease:
    """What keeps a segment from being used again; it lives as long as views of the segment's memory."""

    def __init__(self, segment: "Segment", owner: "Segments | None") -> None:
        self.segment, self.owner = segment, owner
        self.address, self.size = 0, 0  # of pages of its own

    def detach(self) -> None:
        """Gives the views pages of their own, with the same bytes; the segment is free then. Other threads may use the views."""
        segment, owner = self.segment, self.owner
        self.owner = None
        self.address, self.size = segment.address, segment.size
        segment.address = segment.size = 0
        if not segment.is_private:
            _map(segment.fd, segment.index, self.size, _PRIVATE | _FIXED, self.address)
        if _libc.madvise(self.address, self.size, _POPULATE_WRITE) != 0:  # before Linux 5.14
            pages = (ctypes.c_ubyte * self.size).from_address(self.address)
            for at in range(0, self.size, 4096):
                pages[at] = pages[at]
        if owner is not None:
            owner.give_back(segment)

    def __del__(self, is_finalizing: "Any" = sys.is_finalizing, pop: "Any" = _lent.pop, munmap: "Any" = _libc.munmap) -> None:
        if is_finalizing():
            return
        pop(id(self), None)
        if self.size:
            munmap(self.address, self.size)
        elif self.owner is not None:
            self.owner.give_back(self.segment)


def _detach_all() -> None:
    for reference in list(_lent.values()):
        lease = reference()
        if lease is not None and not lease.size and lease.segment.index != START:
            lease.detach()


# A child of fork has memory of its own, and shares no array with its parent.
os.register_at_fork(before=_detach_all)


def _map(fd: int, index: int, size: int, flags: int, address: "int | None" = None) -> int:
    place = _libc.mmap(address, size, _READ_AND_WRITE, flags, fd, index * SPAN)
    if place == ctypes.c_void_p(-1).value:
        raise MemoryError(f"{size} bytes of shared memory cannot be mapped: {os.strerror(ctypes.get_errno())}")
    return int(place)


class Segment:
    """Memory of the file for one value, of which `size` bytes are mapped at `address`."""

    def __init__(self, fd: int, index: int, is_private: bool = False) -> None:
        self.fd, self.index, self.is_private = fd, index, is_private
        self.address, self.size = 0, 0
        self.freed_at = 0.0  # if its pages may exist

    def __del__(self, munmap: "Any" = _libc.munmap) -> None:
        if self.size:
            munmap(self.address, self.size)

    def map(self, size: int) -> None:
        """At least `size` bytes, what is in the segment included. MemoryError: there is no room, or no memory."""
        if size > SPAN:
            raise MemoryError(f"a value of {size} bytes")
        if size <= self.size:
            return
        self.unmap()
        rounded = -(-size // _ROUNDING) * _ROUNDING
        self.address, self.size = _map(self.fd, self.index, rounded, _PRIVATE if self.is_private else _SHARED), rounded

    def populate(self, size: int) -> None:
        """All pages at a time, which costs half of what one fault for each does. MemoryError: there are no more."""
        if _libc.madvise(self.address, size, _POPULATE_WRITE) != 0 and ctypes.get_errno() != 22:  # EINVAL: before Linux 5.14
            raise MemoryError(f"{size} bytes of shared memory: {os.strerror(ctypes.get_errno())}")

    def unmap(self) -> None:
        if self.size:
            _libc.munmap(self.address, self.size)
        self.address = self.size = 0

    def write(self, parts: "list[bytes | memoryview]", places: "list[Place]", end: int) -> None:
        is_new = end > self.size
        self.map(end)
        if is_new:
            self.populate(end)
        to = self._view(None)
        for part, (at, length) in zip(parts, places):
            to[at:at + length] = part

    def lend(self, owner: "Segments | None") -> "tuple[memoryview, weakref.ref[Lease]]":
        """A view of the memory. The segment is not used again while there is a view that was made of it."""
        lease = Lease(self, owner)
        reference = _lent[id(lease)] = weakref.ref(lease)
        return self._view(lease), reference

    def _view(self, lease: "Lease | None") -> memoryview:
        memory: Any = (ctypes.c_ubyte * self.size).from_address(self.address)
        memory.lease = lease
        return pickle.PickleBuffer(memory).raw()


def cut(view: memoryview, places: "Iterable[Place]") -> "list[memoryview]":
    return [view[at:at + length] for at, length in places]


class Segments:
    """The program's side: makes the file, and hands segments out. Free ones keep their pages for a second."""

    def __init__(self) -> None:
        self.fd: int = _libc.memfd_create(b"freehold values", _CLOSE_ON_EXEC | _ALLOW_SEALING)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.ftruncate(self.fd, 1 << 62)
        fcntl.fcntl(self.fd, _ADD_SEALS, _SIZE_SEALS)
        self._process = os.getpid()
        self._lock = _thread.allocate_lock()
        self._numbers = itertools.count(START + 1)
        self._unused: "list[int]" = []  # numbers of segments without pages
        self._free: "list[Segment]" = []  # the latest last
        self._returned: "deque[Segment]" = deque()  # free, too; give_back() has no lock
        self._is_purging = _thread.allocate_lock()

    def __del__(self, close: "Any" = os.close) -> None:
        if self.fd >= 0:
            close(self.fd)

    def take(self, size: int = 0) -> Segment:
        """The smallest free segment that has so many bytes, or a new one; with 0, one that was used lately."""
        if not size:
            try:
                return self._returned.pop()
            except IndexError:
                pass
        with self._lock:
            self._collect()
            fitting = [segment for segment in self._free if segment.size >= size]
            if not fitting:
                return Segment(self.fd, self._unused.pop() if self._unused else next(self._numbers))
            segment = min(fitting, key=lambda each: each.size) if size else fitting[-1]
            self._free.remove(segment)
            return segment

    def give_back(self, segment: Segment, is_used: bool = True) -> None:
        if os.getpid() != self._process:  # a child of fork; they are its parent's
            return
        if is_used:
            segment.freed_at = time.monotonic()
        self._returned.append(segment)
        if segment.freed_at and self._is_purging.acquire(False):
            try:
                _thread.start_new_thread(self._purge, ())
            except RuntimeError:  # the program ends, or has no thread to spare: the next one will try
                self._is_purging.release()

    def _collect(self) -> None:
        while self._returned:
            self._free.append(self._returned.popleft())

    def _purge(self) -> None:
        """A thread, while there are free segments that have pages."""
        while True:
            time.sleep(_KEPT_SECONDS)
            with self._lock:
                self._collect()
                until = time.monotonic() - _KEPT_SECONDS
                old = [segment for segment in self._free if 0 < segment.freed_at <= until]
                for segment in old:
                    self._free.remove(segment)
                    segment.unmap()
                    segment.freed_at = 0.0
                    _libc.fallocate(self.fd, _PUNCH_HOLE, segment.index * SPAN, SPAN)
                    self._unused.append(segment.index)
                if any(segment.freed_at for segment in self._free):
                    continue
            self._is_purging.release()
            if not self._returned or not self._is_purging.acquire(False):
                return


class WorkerSegments:
    """A worker's side: the mappings that it used last stay, since a new one costs a fault for each page."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._kept: "dict[int, Segment]" = {}

    def get(self, index: int, is_private: bool = False) -> Segment:
        segment = self._kept.pop(index, None) or Segment(self._fd, index, is_private)
        if not is_private:
            self._kept[index] = segment
            if len(self._kept) > _KEPT_MAPPINGS:
                del self._kept[next(iter(self._kept))]
        return segment

    def keep_what_is_left(self, lease: "Lease | None") -> None:
        """Gives the views of a lease, if some are left, memory of their own."""
        if lease is not None and not lease.size:
            self._kept.pop(lease.segment.index, None)
            lease.detach()
