# SPDX-License-Identifier: MIT
"""The worker's side of freehold.ProcessPool: a Python process that becomes a worker by freehold_process_worker_run()."""
import base64
import ctypes
import os
import pickle
import sys
import traceback
from multiprocessing import spawn

from freehold import _native

TYPE_CHECKING = False  # typing's, for a checker; workers start faster without that module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_COMPONENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_size_t))


def _answer(call: bytes, function: "Callable[..., object]") -> bytes:
    try:
        fn, args, kwargs = pickle.loads(_native.read_large(call) if call[:1] == _native.LARGE else call)
        return _native.RESULT + pickle.dumps((fn or function)(*args, **kwargs), pickle.HIGHEST_PROTOCOL)
    except SystemExit:
        raise
    except BaseException as error:
        trace = traceback.format_exc()
        error.__traceback__ = None
        try:
            return _native.EXCEPTION + pickle.dumps((error, trace), pickle.HIGHEST_PROTOCOL)
        except Exception:
            plain = RuntimeError(f"{type(error).__name__}: {error} (it cannot be pickled)")
            return _native.EXCEPTION + pickle.dumps((plain, trace))


def _load_start(data: bytes) -> "tuple[str, str | None, Any, Any, tuple[Any, ...]]":
    # The caller's main module comes first, as in multiprocessing: the functions may be defined there.
    preparation, rest = pickle.loads(data)
    spawn.prepare(preparation)
    path, folder, function, initializer, initargs = pickle.loads(rest)
    return path, folder, function, initializer, initargs


def main(start: str) -> "NoReturn":
    path, folder, function, initializer, initargs = _load_start(base64.b64decode(start))
    library = ctypes.CDLL(path)
    if initializer is not None:
        initializer(*initargs)

    def run(data: int, length: int, output: int, capacity: int, written: "ctypes.Array[ctypes.c_size_t]") -> int:
        try:
            answer = _answer(ctypes.string_at(data, length), function)
        except SystemExit as leave:  # ends the worker in the call, like a crash
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leave.code if isinstance(leave.code, int) else 1)
        if len(answer) > capacity:
            if folder is None:
                return _native.ANSWER_TOO_LARGE
            try:
                answer = _native.write_large(folder, answer)
            except OSError as error:
                answer = _native.EXCEPTION + pickle.dumps((error, ""))
        ctypes.memmove(output, answer, len(answer))
        written[0] = ctypes.c_size_t(len(answer))
        return 0

    library.freehold_process_worker_run.argtypes = [_COMPONENT]
    status = library.freehold_process_worker_run(_COMPONENT(run))
    sys.stdout.flush()
    os._exit(status)
