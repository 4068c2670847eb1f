# SPDX-License-Identifier: MIT
"""Freehold as the malloc of the running interpreter.

A malloc can be replaced only when a process begins. preload() therefore executes the interpreter once more, with the same
arguments and LD_PRELOAD set. Invariant: at most one execution; a mark in the environment says that it has been tried.
"""
import ctypes
import os
import sys
import threading

from freehold._files import find_malloc

_MARK = "FREEHOLD_PYTHON_PRELOAD"  # the process that has executed itself


def is_active() -> bool:
    """Whether malloc is Freehold's in this process."""
    try:
        function = ctypes.CDLL(None).freehold_is_active
    except AttributeError:
        return False
    return bool(function())


def preload(*, objects: bool = False) -> None:
    """Makes malloc Freehold's, by executing this interpreter once more under LD_PRELOAD; returns if it is already.

    Call it first, before the program reads its input or starts threads: everything begins again. Programs that it starts
    inherit the setting.

    objects  small Python objects are taken from malloc as well (PYTHONMALLOC=malloc), where CPython has an allocator of its own

    RuntimeError: it cannot be done in this process; the message names the way out. FileNotFoundError: there is no library.
    """
    tried = os.environ.pop(_MARK, None) == str(os.getpid())
    if is_active():
        return
    if tried:
        raise RuntimeError("the dynamic linker has ignored LD_PRELOAD, as it does for privileged and for static programs")
    library = find_malloc()
    _check(library)
    environment = dict(os.environ)
    environment[_MARK] = str(os.getpid())  # exec keeps the number
    environment["LD_PRELOAD"] = ":".join(filter(None, (library, environment.get("LD_PRELOAD"))))
    if objects:
        environment["PYTHONMALLOC"] = "malloc"
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _check(library: str) -> None:
    if " " in library or ":" in library:
        raise RuntimeError(f"LD_PRELOAD cannot name {library}: its path has a space or a colon; "
                           "copy it elsewhere and set FREEHOLD_LIBRARY")
    if not sys.executable or sys.argv[:1] in ([], [""], ["-"]):
        raise RuntimeError("this program cannot be started again, as it comes from standard input or runs in another "
                           "program: use `python -m freehold run -- PROGRAM`")
    if threading.active_count() > 1:
        raise RuntimeError("threads are running, and would be lost: call preload() before they start")
