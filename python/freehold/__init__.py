# SPDX-License-Identifier: MIT
"""Runs Python functions in Freehold's worker processes, through libfreehold_process.so.

    from freehold import ProcessPool

    with ProcessPool(function=work, max_workers=4, limit=5.0) as pool:
        pool(3)                                   # calls work(3) in a worker and returns what it returns
        pool.submit(other, 3).result()            # a concurrent.futures.Executor, for any function
        await pool.acall(3)                       # asyncio; or loop.run_in_executor(pool, other, 3)

Unlike in the standard library's pool, a worker that crashes, hangs beyond `limit` or grows beyond `kill_rss` fails only the call
that it ran, by WorkerDied; other calls go on, and a new worker is started. As in the standard library, functions, arguments and
results are pickled, and a program guards its main module by `if __name__ == "__main__":` (the "spawn" method). Threads: any.
"""
import base64
import concurrent.futures
import ctypes
import itertools
import os
import pickle
import sys
import threading
import types
from multiprocessing import spawn

__all__ = ["ProcessPool", "WorkerDied", "TooLarge", "find_library"]

_REASONS = {1: "was killed by signal {}", 2: "exited with status {}", 3: "took longer than {} ms",
            4: "grew beyond {} MiB", 6: "cannot be started: {}", 7: "has written into the pool's memory"}
_COMPONENT, _NO_WORKER, _TOO_LARGE = 5, 6, 33
RESULT, EXCEPTION = b"r", b"e"  # the first byte of an answer
ANSWER_TOO_LARGE = 1            # what the worker's component returns


class WorkerDied(RuntimeError):
    """The worker died before the call ended. `kind` and `detail` are those of freehold/process.h."""

    def __init__(self, kind, detail, text):
        super().__init__(text)
        self.kind, self.detail = kind, detail

    def __reduce__(self):
        return type(self), (self.kind, self.detail, self.args[0])


class TooLarge(ValueError):
    """The pickled arguments or result need more than max_input or max_output bytes."""


class _Options(ctypes.Structure):
    """freehold_pool_options."""
    _fields_ = ([("size", ctypes.c_size_t), ("component", ctypes.c_char_p), ("worker_program", ctypes.c_char_p)] +
                [(name, ctypes.c_uint32) for name in ("max_workers", "entries")] +
                [(name, ctypes.c_uint64) for name in ("max_input", "max_output")] +
                [(name, ctypes.c_uint32) for name in ("attempts", "reserved")] +
                [(name, ctypes.c_uint64) for name in ("limit_ms", "idle_ms", "max_tasks", "max_rss", "max_age_ms", "kill_rss")] +
                [("log", ctypes.c_void_p), ("log_context", ctypes.c_void_p)] +
                [(name, ctypes.c_uint32) for name in ("min_workers", "keep_standard_error")] +
                [("load_limit_ms", ctypes.c_uint64), ("command", ctypes.POINTER(ctypes.c_char_p))])


def find_library():
    """$FREEHOLD_PROCESS_LIBRARY, the library of the prefix that this package is installed in, or the system's."""
    named = os.environ.get("FREEHOLD_PROCESS_LIBRARY")
    if named:
        return named
    prefix = os.path.dirname(os.path.abspath(__file__))
    for _ in range(5):
        prefix = os.path.dirname(prefix)
        for folder in ("lib", "lib/x86_64-linux-gnu", "lib64"):
            path = os.path.join(prefix, folder, "libfreehold_process.so")
            if os.path.exists(path):
                return path
    return "libfreehold_process.so"


def _load(path):
    library = ctypes.CDLL(path)
    library.freehold_pool_open.restype = ctypes.c_void_p
    library.freehold_pool_call.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    library.freehold_pool_close.argtypes = [ctypes.c_void_p]
    for name in ("freehold_pool_status", "freehold_pool_error"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        getattr(library, name).restype = ctypes.c_size_t
    return library


def _milliseconds(seconds):
    return 0 if seconds is None else max(1, int(seconds * 1000))


class _Buffer(threading.local):
    """A thread's buffer for answers. Pages of it that are never used take no memory."""

    def __init__(self, size):
        self.memory = ctypes.create_string_buffer(size)
        self.figures = (ctypes.c_size_t * 1)(), (ctypes.c_int * 1)()
        self.size = size
        self.address = ctypes.addressof(self.memory)
        self.length, self.detail = (ctypes.addressof(figure) for figure in self.figures)


class ProcessPool(concurrent.futures.Executor):
    """A concurrent.futures.Executor whose workers are supervised, see the module.

    max_workers            worker processes; default: one for each CPU
    function               what pool(...) calls
    initializer, initargs  initializer(*initargs) runs in each worker before its first call
    limit                  seconds that a call may take; then its worker is killed
    idle                   seconds without a call after which a worker ends
    attempts               runs of a call whose worker dies; with more than 1 it runs again
    max_input, max_output  bytes of one pickled call, or result
    entries                calls at a time, waiting and running
    min_workers            workers that are kept even without calls
    max_tasks_per_child    calls after which a worker is replaced
    max_rss                bytes beyond which a worker is replaced between two calls
    kill_rss               bytes beyond which a worker is killed, even in a call
    library                path of libfreehold_process.so; default: find_library()
    """

    def __init__(self, max_workers=None, *, function=None, initializer=None, initargs=(), limit=None, idle=None, attempts=1,
                 max_input=16 << 20, max_output=16 << 20, entries=0, min_workers=0, max_tasks_per_child=0, max_rss=0, kill_rss=0,
                 library=None):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._workers = max_workers or len(os.sched_getaffinity(0))
        path = library or find_library()
        self._c = _load(path)
        preparation = spawn.get_preparation_data("freehold")
        preparation.pop("authkey", None)  # a secret of multiprocessing, which workers do not need
        start = pickle.dumps((preparation, pickle.dumps((path, function, initializer, initargs))))
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # One word of the command line has room for 128 KiB; a larger one makes freehold_pool_open fail with a clear error.
        code = f"import sys; sys.path.insert(0, {folder!r}); from freehold import _worker; _worker.main(sys.argv[1])"
        words = [sys.executable, "-c", code, base64.b64encode(start).decode()]
        command = (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)
        chosen = _Options(size=ctypes.sizeof(_Options), max_workers=self._workers, entries=entries, max_input=max_input,
                          max_output=max_output, attempts=attempts, limit_ms=_milliseconds(limit), idle_ms=_milliseconds(idle),
                          max_tasks=max_tasks_per_child or 0, max_rss=max_rss, kill_rss=kill_rss, min_workers=min_workers,
                          command=command)
        error = ctypes.create_string_buffer(256)
        self._pool = self._c.freehold_pool_open(ctypes.byref(chosen), error, ctypes.c_size_t(len(error)))
        if not self._pool:
            raise OSError(error.value.decode())
        self._function = function
        self._buffer = _Buffer(max_output)
        # Each of these threads waits for one answer, asleep in the library.
        self._threads = concurrent.futures.ThreadPoolExecutor(self._workers, thread_name_prefix="freehold")
        self._lock = threading.Lock()
        self._closed = False
        self._under_way = 0

    # ---- one call

    def __call__(self, *args, **kwargs):
        """Calls `function` in a worker and returns its result."""
        if self._function is None:
            raise TypeError("this pool has no function: use submit(function, ...)")
        return self._run(pickle.dumps((None, args, kwargs), pickle.HIGHEST_PROTOCOL))

    async def acall(self, *args, **kwargs):
        """The same without blocking the event loop."""
        if self._function is None:
            raise TypeError("this pool has no function: use loop.run_in_executor(pool, function, ...)")
        import asyncio  # here, since workers start faster without it
        return await asyncio.wrap_future(self._submit((None, args, kwargs)))

    def _run(self, data):
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot call after shutdown")
            self._under_way += 1
        try:
            return self._exchange(data)
        finally:
            with self._lock:
                self._under_way -= 1

    def _exchange(self, data):
        buffer = self._buffer
        kind = self._c.freehold_pool_call(self._pool, data, len(data), buffer.address, buffer.size, buffer.length, buffer.detail)
        if kind:
            raise self._failure(kind, buffer.figures[1][0])
        view = memoryview(buffer.memory)[:buffer.figures[0][0]]
        what, answer = bytes(view[:1]), pickle.loads(view[1:])
        if what == EXCEPTION:
            error, trace = answer
            error.__cause__ = _remote_traceback(trace)
            raise error
        return answer

    def _failure(self, kind, detail):
        if kind == _TOO_LARGE:
            return TooLarge("the pickled call is larger than max_input")
        if kind == _COMPONENT:
            return TooLarge("the pickled result is larger than max_output")
        if kind == _NO_WORKER:
            detail = self.error() or "the pool has ended"
        return WorkerDied(kind, detail, "a worker " + _REASONS.get(kind, "failed: kind {}, detail {{}}".format(kind)).format(detail))

    # ---- concurrent.futures.Executor

    def submit(self, fn, /, *args, **kwargs):
        return self._submit((fn, args, kwargs))

    def _submit(self, call):
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            return self._threads.submit(self._pickle_and_run, call)

    def _pickle_and_run(self, call):
        return self._exchange(pickle.dumps(call, pickle.HIGHEST_PROTOCOL))

    def map(self, fn, *iterables, timeout=None, chunksize=1):
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        calls = zip(*iterables)
        chunks = iter(lambda: tuple(itertools.islice(calls, chunksize)), ())
        results = super().map(_run_chunk, itertools.repeat(fn), chunks, timeout=timeout)
        return itertools.chain.from_iterable(results)

    def shutdown(self, wait=True, *, cancel_futures=False):
        with self._lock:
            closed, self._closed = self._closed, True
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if closed:
            return
        if wait:
            self._close()
        else:
            threading.Thread(target=self._close, name="freehold shutdown").start()

    def _close(self):
        self._threads.shutdown(wait=True)
        while True:
            with self._lock:
                if self._under_way == 0:
                    break
            threading.Event().wait(0.001)
        pool, self._pool = self._pool, None
        if pool:
            self._c.freehold_pool_close(pool)

    # ---- state

    def status(self):
        """One line for people."""
        return self._text(self._c.freehold_pool_status)

    def error(self):
        """Why no worker can be started; empty if workers can be started."""
        return self._text(self._c.freehold_pool_error)

    def _text(self, function):
        text = ctypes.create_string_buffer(1024)
        if self._pool:
            function(self._pool, text, len(text))
        return text.value.decode(errors="replace")

    __class_getitem__ = classmethod(types.GenericAlias)


def _remote_traceback(trace):
    try:  # as the standard library's pool does
        from concurrent.futures.process import _RemoteTraceback
        return _RemoteTraceback(f'\n"""\n{trace}"""')
    except ImportError:
        return RuntimeError("\n" + trace)


def _run_chunk(fn, chunk):
    return [fn(*args) for args in chunk]
