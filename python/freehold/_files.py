# SPDX-License-Identifier: MIT
"""Where Freehold's files lie: where a variable says, in the wheel, or in the prefix that this package is installed in.

In the wheel they lie in this package, as <package>/bin and <package>/lib. An installed tree has the package in
<prefix>/share/freehold/python or <prefix>/lib/python3/dist-packages, and the files in <prefix>/bin and <prefix>/lib.
"""
import os
from collections.abc import Iterator

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_LEVELS = 5  # from the package up to its prefix, at most


def _prefixes() -> Iterator[str]:
    folder = _PACKAGE
    for _ in range(_LEVELS + 1):
        yield folder
        folder = os.path.dirname(folder)


def _named(variable: str) -> "str | None":
    return os.environ.get(variable) or None


def _find(name: str, *folders: str) -> "str | None":
    for prefix in _prefixes():
        for folder in folders:
            path = os.path.join(prefix, folder, name)
            if os.path.isfile(path):
                return path
    return None


def _find_library(name: str) -> "str | None":
    return _find(name, "lib", f"lib/{os.uname().machine}-linux-gnu", "lib64")


def find_library() -> str:
    """The process pool's library: $FREEHOLD_PROCESS_LIBRARY, the one of this installation, or the system's by its name."""
    name = "libfreehold_process.so"
    return _named("FREEHOLD_PROCESS_LIBRARY") or _find_library(name) or name


def find_malloc() -> str:
    """The library for LD_PRELOAD: $FREEHOLD_LIBRARY, or the one of this installation. FileNotFoundError if there is none."""
    path = _named("FREEHOLD_LIBRARY") or _find_library("libfreehold.so")
    if path is None:
        raise FileNotFoundError(f"libfreehold.so not found near {_PACKAGE}; set FREEHOLD_LIBRARY to its path")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"FREEHOLD_LIBRARY names no library: {path}")
    return os.path.realpath(path)


def find_command() -> str:
    """The `freehold` command: $FREEHOLD_COMMAND, or the one of this installation. FileNotFoundError if there is none."""
    path = _named("FREEHOLD_COMMAND") or _find("freehold", "bin")
    if path is None:
        raise FileNotFoundError(f"the freehold command was not found near {_PACKAGE}; set FREEHOLD_COMMAND to its path")
    return path
