#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes beside each threshold of the verdict's table how many answers of stored reports change when it is a tenth lower, and higher:
margins.py JUDGE_REPORTS FOLDER..."""

import re
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "tools/doctor/verdict/verdict_table.cpp"


def main(judge, *folders):
    rows = subprocess.run([judge, "--margins", *folders], capture_output=True, text=True, check=True).stdout.splitlines()
    margins = {row.split("\t")[2]: row.split("\t")[0].replace(" ", ", ") for row in rows}  # by the reason, which each has its own of
    text = re.sub(r'(  set\(Limit::k\w+, [^,]+, "([^"]*)")[^)"]*\);', lambda line: f"{line[1]}, {margins[line[2]]});", TABLE.read_text())
    TABLE.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
