# SPDX-License-Identifier: MIT
"""python -m freehold ARGUMENTS...: becomes the `freehold` command, with the same arguments and exit status."""
import os
import signal
import sys
from typing import NoReturn

from freehold._files import find_command

_REFUSED = 2


def main() -> NoReturn:
    try:
        command = find_command()
    except FileNotFoundError as error:
        refuse(str(error))
    try:
        # Python ignores these two, and a program inherits what is ignored.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command, ["freehold", *sys.argv[1:]])
    except OSError as error:
        refuse(f"cannot execute {command}: {error.strerror}")


def refuse(why: str) -> NoReturn:
    print(f"freehold: {why}", file=sys.stderr)
    sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
