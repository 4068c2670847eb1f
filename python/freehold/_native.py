# SPDX-License-Identifier: MIT
"""libfreehold_process.so by ctypes: the functions and the struct of freehold/process.h that the pool uses."""
import ctypes
import os

OK, SIGNAL, EXIT, DEADLINE, MEMORY, COMPONENT, NO_WORKER, CORRUPT = range(8)  # how a task ended
FULL, TOO_LARGE, NO_MEMORY = 32, 33, 35
STATS_TEXT = 0  # a format of the figures

# What a worker answers: its first byte, or what its component returns.
RESULT, EXCEPTION = b"r", b"e"
ANSWER_TOO_LARGE = 1
# A call or an answer that is larger than the place for it: this byte and the path of a file that holds it.
LARGE = b"f"
AREA = 16 << 20  # bytes of that place, unless a pool has a limit


def write_large(folder: str, data: bytes) -> bytes:
    """Writes the data to a new file of this user's folder, made if it is not there. What stands for it."""
    import tempfile  # workers start faster without it
    os.makedirs(folder, 0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    number, path = tempfile.mkstemp(dir=folder)
    try:
        with open(number, "wb") as file:
            file.write(data)
    except BaseException:
        os.unlink(path)
        raise
    return LARGE + os.fsencode(path)


def read_large(data: bytes) -> bytes:
    with open(data[1:], "rb") as file:
        return file.read()


def take_large(data: bytes) -> bytes:
    try:
        return read_large(data)
    finally:
        os.unlink(data[1:])


class Options(ctypes.Structure):
    """freehold_process_pool_options_t, as far as it is used here: `size` says how far. What is 0 has its default."""
    _fields_ = [
        ("size", ctypes.c_size_t), ("component", ctypes.c_char_p), ("worker_program", ctypes.c_char_p),
        *((name, ctypes.c_uint32) for name in ("max_workers", "max_open_tasks")),
        *((name, ctypes.c_uint64) for name in ("max_input_bytes", "max_output_bytes")),
        *((name, ctypes.c_uint32) for name in ("max_attempts", "min_workers")),
        *((name, ctypes.c_uint64) for name in ("run_timeout_ms", "idle_timeout_ms", "load_timeout_ms", "max_tasks",
                                               "max_rss_bytes", "max_age_ms", "kill_rss_bytes")),
        ("log", ctypes.c_void_p), ("log_context", ctypes.c_void_p),
        *((name, ctypes.c_uint32) for name in ("keep_standard_error", "max_retry_attempts")),
        ("command", ctypes.POINTER(ctypes.c_char_p))]


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.freehold_process_pool_create.argtypes = [ctypes.POINTER(Options)]
    library.freehold_process_pool_create.restype = ctypes.c_void_p
    library.freehold_process_pool_call.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
        ctypes.c_void_p]
    library.freehold_process_pool_destroy.argtypes = [ctypes.c_void_p]
    library.freehold_process_pool_stats.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.freehold_process_pool_error.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    for text in (library.freehold_process_pool_stats, library.freehold_process_pool_error):
        text.restype = ctypes.c_size_t
    return library


def error_of(library: ctypes.CDLL, pool: "int | None") -> str:
    text = ctypes.create_string_buffer(1024)
    library.freehold_process_pool_error(pool, text, len(text))
    return text.value.decode(errors="replace")


def create_pool(library: ctypes.CDLL, options: Options, words: "list[bytes]") -> int:
    """A pool whose worker program is `words`; OSError says why there is none."""
    options.size = ctypes.sizeof(Options)
    options.command = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    pool: "int | None" = library.freehold_process_pool_create(ctypes.byref(options))
    error = error_of(library, pool)
    if error or not pool:
        library.freehold_process_pool_destroy(pool)
        raise OSError(error)
    return pool
