# SPDX-License-Identifier: MIT
"""The table of `script/bench floors`, from its stored form."""

from . import report


def render(data):
    return report.table(["floor", "unit", "least", "median", "most"],
                        [[name, about["unit"], *(report.number(about[key]) for key in ("least", "median", "most"))]
                         for name, about in data["floors"].items()])
