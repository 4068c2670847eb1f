# SPDX-License-Identifier: MIT
"""Bad input: one line on standard error with the way out, and exit code 2, before anything is measured."""

import pathlib
import sys


def refuse(reason):
    print(f"script/bench: {reason}", file=sys.stderr)
    raise SystemExit(2)


def check_writable(path):
    """Refuses a result file that certainly cannot be written; None: none is wanted."""
    if path is None:
        return
    target = pathlib.Path(path)
    existed = target.exists()
    try:
        with target.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}")
    if not existed:
        target.unlink()
