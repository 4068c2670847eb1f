# SPDX-License-Identifier: MIT
"""The process pool from Python, through libfreehold_process.so: no packages, any number of threads.

    process_pool.py LIBRARY COMPONENT
"""
import concurrent.futures
import ctypes
import sys
import threading


class Options(ctypes.Structure):
    """freehold_process_pool_options_t: what is 0 has its default."""
    _fields_ = ([("size", ctypes.c_size_t), ("component", ctypes.c_char_p), ("worker_program", ctypes.c_char_p)] +
                [(name, ctypes.c_uint32) for name in ("max_workers", "max_open_tasks")] +
                [(name, ctypes.c_uint64) for name in ("max_input_bytes", "max_output_bytes")] +
                [(name, ctypes.c_uint32) for name in ("max_attempts", "min_workers")] +
                [(name, ctypes.c_uint64) for name in ("run_timeout_ms", "idle_timeout_ms", "load_timeout_ms")])


class TaskFailed(Exception):
    """`kind` is one of freehold/process.h, `detail` the signal, the status, what the component returned."""

    def __init__(self, kind, detail):
        super().__init__(f"kind {kind}, detail {detail}")
        self.kind, self.detail = kind, detail


class Pool:
    """Calls a component in worker processes. Threads: any; ctypes gives up the interpreter's lock meanwhile."""

    def __init__(self, library, component, max_output_bytes=1 << 20, **options):
        self._c = ctypes.CDLL(library)
        self._c.freehold_process_pool_create.restype = ctypes.c_void_p
        self._c.freehold_process_pool_call.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int)]
        self._c.freehold_process_pool_destroy.argtypes = [ctypes.c_void_p]
        self._max_output_bytes = max_output_bytes
        self._kept = threading.local()  # a buffer for each thread: a new one for each call would cost more than the call
        chosen = Options(size=ctypes.sizeof(Options), component=component.encode(), max_output_bytes=max_output_bytes, **options)
        self._pool = self._c.freehold_process_pool_create(ctypes.byref(chosen))
        error = ctypes.create_string_buffer(256)
        if self._c.freehold_process_pool_error(ctypes.c_void_p(self._pool), error, ctypes.c_size_t(len(error))):
            raise OSError(error.value.decode())

    def __call__(self, data):
        output = getattr(self._kept, "buffer", None)
        if output is None:
            output = self._kept.buffer = ctypes.create_string_buffer(self._max_output_bytes)
        length, detail = ctypes.c_size_t(), ctypes.c_int()
        kind = self._c.freehold_process_pool_call(self._pool, data, len(data), None, output, len(output),
                                                  ctypes.byref(length), ctypes.byref(detail))
        if kind != 0:
            raise TaskFailed(kind, detail.value)
        return ctypes.string_at(output, length.value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._c.freehold_process_pool_destroy(self._pool)


def main(library, component):
    with (Pool(library, component, max_output_bytes=4096, max_attempts=2, run_timeout_ms=10_000) as square,
          concurrent.futures.ThreadPoolExecutor(4) as threads):
        futures = [threads.submit(square, b"%d" % number) for number in range(1, 101)]
        total = 0
        for number, future in enumerate(futures, start=1):
            try:
                total += int(future.result())
            except TaskFailed as failure:
                print(f"{number}: failed by signal {failure.detail}")
        print(f"sum of the squares {total}")


if __name__ == "__main__":
    main(*sys.argv[1:])
