# SPDX-License-Identifier: MIT
"""The worker's side of freehold.ProcessPool: a Python process that becomes a worker by freehold_process_worker_run()."""
import ctypes
import os
import pickle
import signal
import sys
import traceback
from multiprocessing import spawn

from freehold import _errors, _native, _segments

TYPE_CHECKING = False  # typing's, for a checker; workers start faster without that module
if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable
    from typing import Any, NoReturn

_COMPONENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_size_t))
_PR_SET_PDEATHSIG = 1


class TooLarge(Exception):
    """The answer is larger than the pool allows."""


class _Calls:
    """What the call that runs uses of segments, and how its answer is made."""

    def __init__(self, segments: _segments.WorkerSegments, limit: "int | None") -> None:
        self.segments, self.limit = segments, limit
        self.input: "_segments.Segment | None" = None
        self.lease: "weakref.ref[_segments.Lease] | None" = None
        self.output: "int | None" = None  # the segment for a large answer
        self.handed_back: "list[_segments.Place]" = []  # places of the input that the answer has

    def load(self, call: bytes) -> "tuple[Any, Any, Any]":
        if call[:1] == _native.LARGE:
            index, places, end, is_private = pickle.loads(call[1:])
            self.input = self.segments.get(index, is_private)
            self.input.map(end)
            view, self.lease = self.input.lend(None)
            parts = _segments.cut(view, places)
            self.output, function, args, kwargs = pickle.loads(parts[0], buffers=parts[1:])
        else:
            self.output, function, args, kwargs = pickle.loads(call)
        return function, args, kwargs

    def end(self) -> None:
        """A view of the input that is still there gets memory of its own."""
        if self.lease is not None:
            self.segments.keep_what_is_left(self.lease())
            self.input = self.lease = None
            self.handed_back.clear()

    def dump(self, what: bytes, value: object) -> bytes:
        main, buffers = _segments.dumps(value)
        if self.limit is not None and len(main) + sum(map(len, buffers)) > self.limit:
            raise TooLarge
        if not buffers and len(main) < _segments.APART:
            return what + main
        # Large buffers of the input go back in its segment, unless two of them overlap; all else goes into the answer's.
        places: "list[Any]" = [self._place_in_input(buffer) for buffer in buffers]
        copied: "list[Any]" = [buffer for buffer, place in zip(buffers, places) if place is None]
        if len(main) >= _segments.APART:
            places.insert(0, None)
            copied.insert(0, main)
            main = b""
        if copied:
            if self.output is None:
                raise TooLarge
            at, end = _segments.places_of(copied)
            self.segments.get(self.output).write(copied, at, end)
            rest = iter(at)
            places = [place or (self.output, *next(rest)) for place in places]
        return _native.LARGE + pickle.dumps((what, main, places))

    def _place_in_input(self, buffer: memoryview) -> "tuple[int, int, int] | None":
        segment = self.input
        if segment is None or segment.is_private or buffer.readonly:
            return None
        at = ctypes.addressof(ctypes.c_char.from_buffer(buffer)) - segment.address
        end = at + len(buffer)
        if at < 0 or end > segment.size or any(at < other + length and other < end for other, length in self.handed_back):
            return None
        self.handed_back.append((at, len(buffer)))
        return segment.index, at, len(buffer)


class _Interrupts:
    """SIGINT: KeyboardInterrupt in the function that it finds running, and nothing between two calls."""

    is_running = False

    def __call__(self, number: int, frame: object) -> None:
        if self.is_running:
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def _answer(calls: _Calls, data: bytes, default: "Callable[..., object]") -> bytes:
    try:
        function, args, kwargs = calls.load(data)
        try:
            _interrupts.is_running = True
            result = (function or default)(*args, **kwargs)
        finally:
            _interrupts.is_running = False
        return calls.dump(_native.RESULT, result)
    except (SystemExit, TooLarge):
        raise
    except BaseException as error:
        _interrupts.is_running = False
        trace = traceback.format_exc()
        error.__traceback__ = None
        return calls.dump(_native.EXCEPTION, _errors.take_apart(error, trace))


def _die_with_the_program() -> None:
    """From the first moment: the library asks for it after the imports and the initializer only."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(os.environ["FREEHOLD_WORKER"].split()[1]):
        os._exit(0)


def _load_start() -> "tuple[str, int | None, Any, Any, tuple[Any, ...]]":
    segment = _segments.Segment(_native.SEGMENTS_DESCRIPTOR, _segments.START, is_private=True)
    os.set_inheritable(_native.SEGMENTS_DESCRIPTOR, False)
    at, length = memoryview(os.pread(segment.fd, 16, 0)).cast("Q")
    segment.map(at + length)
    view = segment.lend(None)[0]
    parts = _segments.cut(view, pickle.loads(view[at:at + length]))
    # The caller's main module comes first, as in multiprocessing: the functions may be defined there.
    spawn.prepare(pickle.loads(parts[0]))
    path, limit, function, initializer, initargs = pickle.loads(parts[1], buffers=parts[2:])
    return path, limit, function, initializer, initargs


def main() -> "NoReturn":
    signal.signal(signal.SIGINT, _interrupts)
    _die_with_the_program()
    path, limit, function, initializer, initargs = _load_start()
    library = ctypes.CDLL(path)
    calls = _Calls(_segments.WorkerSegments(_native.SEGMENTS_DESCRIPTOR), limit)
    if initializer is not None:
        initializer(*initargs)
    del initializer, initargs

    def run(data: int, length: int, output: int, capacity: int, written: "ctypes.Array[ctypes.c_size_t]") -> int:
        try:
            answer = _answer(calls, ctypes.string_at(data, length), function)
        except TooLarge:
            return _native.ANSWER_TOO_LARGE
        except SystemExit as leave:  # ends the worker in the call, like a crash
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leave.code if isinstance(leave.code, int) else 1)
        finally:
            calls.end()
        if len(answer) > capacity:
            return _native.ANSWER_TOO_LARGE
        ctypes.memmove(output, answer, len(answer))
        written[0] = ctypes.c_size_t(len(answer))
        return 0

    library.freehold_process_worker_run.argtypes = [_COMPONENT]
    status = library.freehold_process_worker_run(_COMPONENT(run))
    sys.stdout.flush()
    os._exit(status)
