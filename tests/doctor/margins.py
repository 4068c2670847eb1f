#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes beside each threshold of the verdicts' tables how many answers of stored reports change when it is a tenth lower, and higher:
margins.py JUDGE_REPORTS FOLDER..."""

import re
import subprocess
import sys
from pathlib import Path

VERDICT = Path(__file__).resolve().parents[2] / "tools/doctor/verdict"


def main(judge, *folders):
    rows = subprocess.run([judge, "--margins", *folders], capture_output=True, text=True, check=True).stdout.splitlines()
    margins = {row.split("\t")[2]: row.split("\t")[0].replace(" ", ", ") for row in rows}  # by the reason, which each has its own of
    for table in (VERDICT / "verdict_table.cpp", VERDICT / "memory_verdict.cpp"):
        line = r'({(?:Memory)?Limit::k\w+,\s+{[^,]+, "([^"]*)")[^}"]*}}'
        table.write_text(re.sub(line, lambda of: f"{of[1]}, {margins[of[2]]}}}}}", table.read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
