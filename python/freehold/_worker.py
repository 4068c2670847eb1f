# SPDX-License-Identifier: MIT
"""The worker's side of freehold.ProcessPool: a Python process that becomes a worker by freehold_worker_run()."""
import base64
import ctypes
import os
import pickle
import sys
import traceback
from multiprocessing import spawn

from freehold import ANSWER_TOO_LARGE, EXCEPTION, RESULT

_COMPONENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_size_t))


def _answer(call, function):
    try:
        fn, args, kwargs = pickle.loads(call)
        return RESULT + pickle.dumps((fn or function)(*args, **kwargs), pickle.HIGHEST_PROTOCOL)
    except SystemExit:
        raise
    except BaseException as error:
        trace = traceback.format_exc()
        error.__traceback__ = None
        try:
            return EXCEPTION + pickle.dumps((error, trace), pickle.HIGHEST_PROTOCOL)
        except Exception:
            return EXCEPTION + pickle.dumps((RuntimeError(f"{type(error).__name__}: {error} (it cannot be pickled)"), trace))


def _load_start(data):
    outer = pickle.loads(data)
    preparation, rest = outer
    spawn.prepare(preparation)
    return (preparation, *pickle.loads(rest))


def main(start):
    # The caller's main module comes first, as in multiprocessing: the functions may be defined there.
    preparation, path, function, initializer, initargs = _load_start(base64.b64decode(start))
    library = ctypes.CDLL(path)
    if initializer is not None:
        initializer(*initargs)

    @_COMPONENT
    def run(data, length, output, capacity, written):
        try:
            answer = _answer(ctypes.string_at(data, length), function)
        except SystemExit as leave:  # ends the worker in the call, like a crash
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leave.code if isinstance(leave.code, int) else 1)
        if len(answer) > capacity:
            return ANSWER_TOO_LARGE
        ctypes.memmove(output, answer, len(answer))
        written[0] = len(answer)
        return 0

    library.freehold_worker_run.argtypes = [_COMPONENT]
    status = library.freehold_worker_run(run)
    sys.stdout.flush()
    os._exit(status)
