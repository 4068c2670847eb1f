# SPDX-License-Identifier: MIT
"""libfreehold_process.so by ctypes: the functions and the struct of freehold/process.h that the pool uses."""
import ctypes

OK, SIGNAL, EXIT, DEADLINE, MEMORY, COMPONENT, NO_WORKER, CORRUPT = range(8)  # how a task ended
FULL, TOO_LARGE, NO_MEMORY = 32, 33, 35
STATS_TEXT = 0  # a format of the figures

# What a worker answers: its first byte, or what its component returns.
RESULT, EXCEPTION = b"r", b"e"
ANSWER_TOO_LARGE = 1
# A call or an answer that has parts in segments: this byte, and the pickle that says where.
LARGE = b"f"
SEGMENTS_DESCRIPTOR = 5  # the memory file of the segments, in a worker: the first that a pool's options name

ENDLESS = 2**64 - 1  # milliseconds: FREEHOLD_NO_LIMIT


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
        ("command", ctypes.POINTER(ctypes.c_char_p)), ("retry_codes", ctypes.c_void_p), ("retry_delay_ms", ctypes.c_uint64),
        ("memory_cgroup", ctypes.c_char_p), *((name, ctypes.c_uint32) for name in ("no_network", "only_these_files")),
        *((name, ctypes.c_void_p) for name in ("readable", "writable")), ("inherited", ctypes.POINTER(ctypes.c_int)),
        ("keep_standard_input", ctypes.c_uint32)]


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


def create_pool(library: ctypes.CDLL, options: Options, words: "list[bytes]", descriptor: int) -> int:
    """A pool whose worker program is `words` and has the descriptor, too; OSError says why there is none."""
    options.size = ctypes.sizeof(Options)
    options.inherited = (ctypes.c_int * 2)(descriptor, -1)
    options.command = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    pool: "int | None" = library.freehold_process_pool_create(ctypes.byref(options))
    error = error_of(library, pool)
    if error or not pool:
        library.freehold_process_pool_destroy(pool)
        raise OSError(error)
    return pool
