# SPDX-License-Identifier: MIT
"""Runs Python functions in Freehold's worker processes, through libfreehold_process.so.

Unlike in the standard library's pool, a worker that crashes, hangs beyond `run_timeout` or grows beyond `kill_rss_bytes` fails only the call
that it ran, by WorkerDied; other calls go on, and a new worker is started. As in the standard library, functions, arguments and
results are pickled, and a program guards its main module by `if __name__ == "__main__":` (the "spawn" method). Threads: any.
"""
from __future__ import annotations

import _thread
import collections
import concurrent.futures
import ctypes
import itertools
import os
import pickle
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from multiprocessing import spawn, util
from typing import TYPE_CHECKING, Any, Generic, cast

from freehold import _errors, _native, _segments
from freehold._files import find_library

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import ParamSpec, Self, TypeVar

    _P = ParamSpec("_P", default=...)
    _R = TypeVar("_R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R")
_T = TypeVar("_T")
_Q = ParamSpec("_Q")

_REASONS = {_native.SIGNAL: "was killed by signal {}", _native.EXIT: "exited with status {}",
            _native.DEADLINE: "took longer than {} ms", _native.MEMORY: "grew beyond {} MiB",
            _native.NO_WORKER: "cannot be started: {}", _native.CORRUPT: "has written into the pool's memory"}


class WorkerDied(RuntimeError):
    """The worker died before the call ended. `kind` and `detail` are those of freehold/process.h."""

    def __init__(self, kind: int, detail: int | str, text: str) -> None:
        super().__init__(text)
        self.kind, self.detail = kind, detail

    def __reduce__(self) -> tuple[type[WorkerDied], tuple[int, int | str, str]]:
        return type(self), (self.kind, self.detail, self.args[0])


class TooLarge(ValueError):
    """The pickled arguments or result need more than max_input_bytes or max_output_bytes."""


class _Buffer(threading.local):
    """A thread's buffer for answers. Pages of it that are never used take no memory."""

    def __init__(self, size: int) -> None:
        self.memory = ctypes.create_string_buffer(size)
        self.figures = (ctypes.c_size_t * 1)(), (ctypes.c_int * 1)()
        self.size = size
        self.address = ctypes.addressof(self.memory)
        self.length, self.detail = (ctypes.addressof(figure) for figure in self.figures)


def _milliseconds(seconds: float | None) -> int:
    """At least one, since 0 is the default; for ever, if that is longer than the library can say."""
    return 0 if seconds is None else int(min(max(seconds * 1000, 1), _native.ENDLESS))


def _worker_words() -> list[bytes]:
    """The command line of a worker, with this interpreter's options. Every user may read it, so nothing of the program stands in it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = f"import sys; sys.path.insert(0, {package!r}); from freehold import _worker; _worker.main()"
    options: list[str] = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [os.fsencode(word) for word in (sys.executable, *options, "-c", code)]


def _write_start(segments: _segments.Segments, *start: object) -> None:
    """What a worker begins with, for _worker._load_start(): 16 bytes that say where the places of the parts lie, the parts, the places."""
    preparation = spawn.get_preparation_data("freehold")
    preparation["authkey"] = bytes(preparation["authkey"])  # which refuses to be pickled, lest it be shown; here nobody sees it
    main, buffers = _segments.dumps(start)
    parts: list[bytes | memoryview] = [bytes(16), pickle.dumps(preparation), main, *buffers]
    places, end = _segments.places_of(parts)
    last = pickle.dumps(places[1:])
    parts[0] = end.to_bytes(8, "little") + len(last).to_bytes(8, "little")
    _segments.Segment(segments.fd, _segments.START).write([*parts, last], [*places, (end, len(last))], end + len(last))


class _Owned:
    """What a pool has besides its threads; it ends with close(), or when the pool is garbage."""

    def __init__(self, library: ctypes.CDLL, options: _native.Options, start: tuple[object, ...]) -> None:
        self.library = library
        self.segments = _segments.Segments()
        _write_start(self.segments, *start)
        self.pool: int | None = _native.create_pool(library, options, _worker_words(), self.segments.fd)

    def close(self) -> None:
        pool, self.pool = self.pool, None
        if pool:
            self.library.freehold_process_pool_destroy(pool)
            del self.segments  # they last as long as what was made of them

    def close_in_the_background(self) -> None:
        """A garbage collection must not wait, nor take locks, as threading.Thread does."""
        if not self.pool:
            return
        try:
            _thread.start_new_thread(self.close, ())
        except RuntimeError:  # the program ends, and its workers with it
            pass


class ProcessPool(concurrent.futures.Executor, Generic[_P, _R]):
    """A concurrent.futures.Executor whose workers are supervised, see the module.

    max_workers            worker processes; default: one for each CPU
    function               what pool(...) calls
    initializer, initargs  initializer(*initargs) runs in each worker before its first call
    run_timeout            seconds that a call may take; then its worker is killed
    idle_timeout           seconds without a call after which a worker ends
    max_attempts           runs of a call whose worker dies; with more than 1 it runs again
    max_input_bytes, max_output_bytes
                           of one pickled call, or result; default: no limit. Buffers and pickles from 1 MiB on go through a memory
                           file, and arrays (pickle's out-of-band buffers) are made of its memory, without a further copy
    max_open_tasks         calls at a time, waiting and running
    min_workers            workers that are kept even without calls
    max_tasks_per_child    calls after which a worker is replaced
    max_rss_bytes          bytes beyond which a worker is replaced between two calls
    kill_rss_bytes         bytes beyond which a worker is killed, even in a call
    keep_standard_input    workers read this program's standard input; otherwise they see its end at once
    library                path of libfreehold_process.so; default: find_library()
    """

    def __init__(self, max_workers: int | None = None, *, function: Callable[_P, _R] | None = None,
                 initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = (),
                 run_timeout: float | None = None, idle_timeout: float | None = None, max_attempts: int = 1,
                 max_input_bytes: int | None = None, max_output_bytes: int | None = None, max_open_tasks: int = 0,
                 min_workers: int = 0, max_tasks_per_child: int | None = None, max_rss_bytes: int = 0,
                 kill_rss_bytes: int = 0, keep_standard_input: bool = False, library: str | None = None) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if function is not None and not callable(function):
            raise TypeError("function must be a callable")
        self._workers = max_workers or len(os.sched_getaffinity(0))
        path = library or find_library()
        self._c = _native.load(path)
        self._max_input = max_input_bytes or 0
        room = min(max_output_bytes or _segments.APART, _segments.APART) + 1
        chosen = _native.Options(
            max_workers=self._workers, max_open_tasks=max_open_tasks,
            max_input_bytes=min(max_input_bytes or _segments.APART, _segments.APART),
            max_output_bytes=room, max_attempts=max_attempts, run_timeout_ms=_milliseconds(run_timeout),
            idle_timeout_ms=_milliseconds(idle_timeout), max_tasks=max_tasks_per_child or 0, max_rss_bytes=max_rss_bytes,
            kill_rss_bytes=kill_rss_bytes, min_workers=min_workers, keep_standard_input=keep_standard_input)
        self._owned = _Owned(self._c, chosen, (path, max_output_bytes, function, initializer, initargs))
        self._is_retried = max_attempts > 1
        # At the program's end there is nothing to do: workers end with it.
        weakref.finalize(self, self._owned.close_in_the_background).atexit = False
        self._function = function
        self._buffer = _Buffer(room)
        # Each of these threads waits for one answer, asleep in the library.
        self._threads = concurrent.futures.ThreadPoolExecutor(self._workers, thread_name_prefix="freehold")
        self._lock = threading.Lock()
        self._closed = False
        self._under_way = 0

    # ---- one call

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Calls `function` in a worker and returns its result."""
        if self._function is None:
            raise TypeError("this pool has no function: use submit(function, ...)")
        return cast(_R, self._run((None, args, kwargs)))

    def _run(self, call: tuple[object, tuple[Any, ...], dict[str, Any]]) -> Any:
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot call after shutdown")
            self._under_way += 1
        try:
            return self._exchange(call)
        finally:
            with self._lock:
                self._under_way -= 1

    def _exchange(self, call: tuple[object, tuple[Any, ...], dict[str, Any]]) -> Any:
        segments = self._owned.segments
        output = segments.take()  # for the answer, in case it is large
        held = {output.index: output}
        try:
            data, buffers = _segments.dumps((output.index, *call))
            if buffers or len(data) >= _segments.APART:
                data = self._write([data, *buffers], held)
            return self._call(data, held)
        finally:
            for segment in held.values():
                segments.give_back(segment, segment is not output)

    def _call(self, data: bytes, held: dict[int, _segments.Segment]) -> Any:
        buffer = self._buffer
        kind = self._c.freehold_process_pool_call(self._owned.pool, data, len(data), None, buffer.address, buffer.size, buffer.length,
                                                  buffer.detail)
        if kind:
            for segment in held.values():
                segment.freed_at = time.monotonic()  # a worker that died may have begun to write
            raise self._failure(kind, buffer.figures[1][0])
        view = memoryview(buffer.memory)[:buffer.figures[0][0]]
        what, parts = bytes(view[:1]), [view[1:]]
        if what == _native.LARGE:
            what, parts = self._read(view[1:], held)
        answer = pickle.loads(parts[0], buffers=parts[1:])
        if what == _native.EXCEPTION:
            error, trace = _errors.put_together(answer)
            error.__cause__ = _remote_traceback(trace)
            raise error
        return answer

    def _write(self, parts: list[bytes | memoryview], held: dict[int, _segments.Segment]) -> bytes:
        """Puts the parts of a call into a segment. What stands for them."""
        places, end = _segments.places_of(parts)
        if self._max_input and sum(map(len, parts)) > self._max_input:
            raise self._failure(_native.TOO_LARGE, 0)
        segment = self._owned.segments.take(end)
        held[segment.index] = segment
        segment.write(parts, places, end)
        return _native.LARGE + pickle.dumps((segment.index, places, end, self._is_retried))

    def _read(self, data: memoryview, held: dict[int, _segments.Segment]) -> tuple[bytes, list[memoryview]]:
        """The parts of an answer. Those in segments are lent: they keep a segment until nothing that was made of them is left."""
        what, main, places = pickle.loads(data)
        lent: dict[int, memoryview] = {}
        for index in {index for index, _, _ in places}:
            if index not in held:
                raise self._failure(_native.CORRUPT, 0)
            segment = held.pop(index)
            segment.map(max(at + length for of, at, length in places if of == index))
            lent[index] = segment.lend(self._owned.segments)[0]
        parts = [lent[index][at:at + length] for index, at, length in places]
        return what, [memoryview(main), *parts] if main else parts

    def _failure(self, kind: int, detail: int) -> Exception:
        if kind == _native.TOO_LARGE:
            return TooLarge("the pickled call is larger than max_input_bytes")
        if kind == _native.NO_MEMORY:
            return MemoryError("too little memory is left for the pickled call")
        if kind == _native.COMPONENT:
            return TooLarge("the pickled result is larger than max_output_bytes")
        why = (self.error() or "the pool has ended") if kind == _native.NO_WORKER else detail
        return WorkerDied(kind, why, "a worker " + _REASONS.get(kind, f"failed: kind {kind}, detail {{}}").format(why))

    # ---- concurrent.futures.Executor

    def submit(self, fn: Callable[_Q, _T], /, *args: _Q.args, **kwargs: _Q.kwargs) -> concurrent.futures.Future[_T]:
        """Calls fn(*args, **kwargs) in a worker. The future can be cancelled until the call begins."""
        return self._submit((fn, args, kwargs))

    def _submit(self, call: tuple[object, tuple[Any, ...], dict[str, Any]]) -> concurrent.futures.Future[Any]:
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return self._threads.submit(self._exchange, call)

    def map(self, fn: Callable[..., _T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1,
            buffersize: int | None = None) -> Iterator[_T]:
        """The results of fn for the items of the iterables, in their order.

        timeout     seconds from now within which a result must be there when it is asked for; else TimeoutError
        chunksize   items that go to a worker in one call
        buffersize  calls that are submitted before their results are taken, at most, as in Python 3.14: the iterables may be
                    endless; default: all at once
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        _check_buffersize(buffersize)
        calls = zip(*iterables)
        if chunksize == 1:
            return self._map(fn, calls, timeout, buffersize)
        chunks = ((fn, chunk) for chunk in iter(lambda: tuple(itertools.islice(calls, chunksize)), ()))
        results: Iterator[list[_T]] = self._map(_run_chunk, chunks, timeout, buffersize)
        return itertools.chain.from_iterable(results)

    def _map(self, fn: Callable[..., _T], calls: Iterator[tuple[Any, ...]], timeout: float | None,
             buffersize: int | None) -> Iterator[_T]:
        end = None if timeout is None else time.monotonic() + timeout
        futures = collections.deque(self.submit(fn, *args) for args in itertools.islice(calls, buffersize))
        return self._results(fn, futures, calls, end)

    def _results(self, fn: Callable[..., _T], futures: collections.deque[concurrent.futures.Future[_T]],
                 calls: Iterator[tuple[Any, ...]], end: float | None) -> Iterator[_T]:
        """Submits a further call for each result. What is left when the caller stops is cancelled."""
        try:
            while futures:
                result = [_result(futures.popleft(), end)]
                futures.extend(self.submit(fn, *args) for args in itertools.islice(calls, 1))
                yield result.pop()  # kept by the caller alone
        finally:
            for future in futures:
                future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuses calls from now on, and ends the workers when the accepted calls are over."""
        with self._lock:
            closed, self._closed = self._closed, True
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if closed:
            return
        if wait:
            self._close()
        else:
            threading.Thread(target=self._close, name="freehold shutdown").start()

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        while True:
            with self._lock:
                if self._under_way == 0:
                    break
            threading.Event().wait(0.001)
        self._owned.close()

    # ---- asyncio: the event loop goes on meanwhile. asyncio is imported here, since programs without it start faster

    async def acall(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Calls `function` in a worker, and returns its result."""
        if self._function is None:
            raise TypeError("this pool has no function: use arun(function, ...)")
        import asyncio
        return cast(_R, await asyncio.wrap_future(self._submit((None, args, kwargs))))

    async def arun(self, fn: Callable[_Q, _T], /, *args: _Q.args, **kwargs: _Q.kwargs) -> _T:
        """Calls fn(*args, **kwargs) in a worker, and returns its result. A call that has not begun is cancelled with the task."""
        import asyncio
        return await asyncio.wrap_future(self.submit(fn, *args, **kwargs))

    async def amap(self, fn: Callable[..., _T], *iterables: Iterable[Any] | AsyncIterable[Any],
                   buffersize: int | None = None) -> AsyncIterator[_T]:
        """The results of fn for the items of the iterables, plain or asynchronous, in their order.

        buffersize  calls that are submitted before their results are taken, at most; default: two for each worker
        """
        import asyncio
        _check_buffersize(buffersize)
        room = buffersize or 2 * self._workers
        futures: collections.deque[asyncio.Future[_T]] = collections.deque()
        try:
            async for args in _azip(iterables):
                futures.append(asyncio.wrap_future(self.submit(fn, *args)))
                if len(futures) == room:
                    yield await futures.popleft()
            while futures:
                yield await futures.popleft()
        finally:
            for future in futures:
                future.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        import asyncio
        await asyncio.to_thread(self.shutdown)

    # ---- state

    def stats(self) -> str:
        """The figures in one line for people."""
        text = ctypes.create_string_buffer(1024)
        if self._owned.pool:
            self._c.freehold_process_pool_stats(self._owned.pool, _native.STATS_TEXT, text, len(text))
        return text.value.decode(errors="replace")

    def error(self) -> str:
        """Why no worker can be started; empty if workers can be started."""
        return _native.error_of(self._c, self._owned.pool) if self._owned.pool else ""


def _check_buffersize(buffersize: int | None) -> None:
    if buffersize is not None and not isinstance(buffersize, int):
        raise TypeError("buffersize must be an integer or None")
    if buffersize is not None and buffersize < 1:
        raise ValueError("buffersize must be None or > 0")


def _result(future: concurrent.futures.Future[_T], end: float | None) -> _T:
    try:
        return future.result(None if end is None else min(end - time.monotonic(), threading.TIMEOUT_MAX))
    finally:
        future.cancel()  # if its time is over; and nothing of it is kept, as a traceback would
        del future


async def _azip(iterables: tuple[Iterable[Any] | AsyncIterable[Any], ...]) -> AsyncIterator[tuple[Any, ...]]:
    """zip() of plain and asynchronous iterables. An item of a plain one is taken in the event loop."""
    iterators = [aiter(each) if isinstance(each, AsyncIterable) else iter(each) for each in iterables]
    while iterators:
        items = []
        for iterator in iterators:
            try:
                items.append(await anext(iterator) if isinstance(iterator, AsyncIterator) else next(iterator))
            except (StopIteration, StopAsyncIteration):
                return
        yield tuple(items)


def _remote_traceback(trace: str) -> BaseException:
    try:  # as the standard library's pool does
        from concurrent.futures.process import _RemoteTraceback
    except ImportError:
        return RuntimeError("\n" + trace)
    text: Any = f'\n"""\n{trace}"""'
    return _RemoteTraceback(text)


def _run_chunk(fn: Callable[..., _T], chunk: tuple[tuple[Any, ...], ...]) -> list[_T]:
    return [fn(*args) for args in chunk]
