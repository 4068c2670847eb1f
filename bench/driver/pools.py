# SPDX-License-Identifier: MIT
"""`script/bench pools`: `freehold pools`, built for measurements. Options go to it; see docs/pools-compare.md."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def built_command():
    """FREEHOLD_COMMAND, or the bench preset's, built now if it is not up to date."""
    if chosen := os.environ.get("FREEHOLD_COMMAND"):
        return chosen
    for step in (["cmake", "--preset", "bench"], ["cmake", "--build", "--preset", "bench", "--target", "freehold_command"]):
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(step)} failed:\n{done.stdout}{done.stderr}")
    return str(ROOT / "build" / "bench" / "bin" / "freehold")


def main(arguments):
    command = built_command()
    os.execv(command, [command, "pools", *arguments])
