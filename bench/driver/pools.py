# SPDX-License-Identifier: MIT
"""`script/bench pools`: `freehold pools`, built for measurements. Options go to it; see docs/pools-compare.md."""

import os

from .rows import preset_program


def built_command():
    return preset_program("FREEHOLD_COMMAND", "bin/freehold", "freehold_command")


def main(arguments):
    command = built_command()
    os.execv(command, [command, "pools", *arguments])
