# SPDX-License-Identifier: MIT
"""`script/bench mspace`: fetches dlmalloc's source; a laboratory that is built after that has `article-mspace` in `freehold timers`."""

import argparse

from . import peers
from .refusal import refuse


def main(arguments):
    argparse.ArgumentParser(prog="script/bench mspace", description=__doc__).parse_args(arguments)
    try:
        print(peers.crate_sources("libffi-sys") / "libffi" / "src" / "dlmalloc.c")
    except peers.Missing as reason:
        refuse(f"no mspace: {reason}")
    return 0
