# SPDX-License-Identifier: MIT
"""Freehold from Python: its malloc, its command, and its pool of worker processes.

    import freehold
    freehold.preload()                            # first thing in a program: this interpreter gets Freehold's malloc
    freehold.stats()["retained_bytes"]            # then: statistics; freehold.trim(), and a heap profile by profile_start()

    from freehold import ProcessPool

    with ProcessPool(function=work, max_workers=4, run_timeout=5.0) as pool:
        pool(3)                                   # calls work(3) in a worker and returns what it returns
        pool.submit(other, 3).result()            # a concurrent.futures.Executor, for any function
        await pool.acall(3)                       # asyncio; or pool.arun(other, 3), or pool.amap(other, numbers)

`python -m freehold` is the `freehold` command: run, doctor, and the others. Names are loaded when they are used first: a worker
process needs none of them.
"""
TYPE_CHECKING = False  # typing's, for a checker; workers start faster without that module
if TYPE_CHECKING:
    from freehold._files import find_command as find_command
    from freehold._files import find_library as find_library
    from freehold._files import find_malloc as find_malloc
    from freehold._malloc import count as count
    from freehold._malloc import heap as heap
    from freehold._malloc import profile_start as profile_start
    from freehold._malloc import profile_stop as profile_stop
    from freehold._malloc import profile_write as profile_write
    from freehold._malloc import stats as stats
    from freehold._malloc import trim as trim
    from freehold._preload import is_active as is_active
    from freehold._preload import preload as preload
    from freehold._process_pool import ProcessPool as ProcessPool
    from freehold._process_pool import TooLarge as TooLarge
    from freehold._process_pool import WorkerDied as WorkerDied

_HOMES = {
    "ProcessPool": "_process_pool", "WorkerDied": "_process_pool", "TooLarge": "_process_pool",
    "preload": "_preload", "is_active": "_preload",
    "stats": "_malloc", "trim": "_malloc", "count": "_malloc", "heap": "_malloc",
    "profile_start": "_malloc", "profile_stop": "_malloc", "profile_write": "_malloc",
    "find_library": "_files", "find_malloc": "_files", "find_command": "_files",
}
__all__ = ["ProcessPool", "TooLarge", "WorkerDied", "count", "find_command", "find_library", "find_malloc", "heap", "is_active", "preload", "profile_start",
           "profile_stop", "profile_write", "stats", "trim"]
__version__ = "0.1.0"


def _load(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next look-up does not come here
    return value


if not TYPE_CHECKING:
    __getattr__ = _load  # which would hide a wrong name from a checker


def __dir__() -> "list[str]":
    return sorted({*globals(), *_HOMES})
