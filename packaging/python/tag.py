# SPDX-License-Identifier: MIT
"""Hatchling's hook: the wheel holds programs of one machine, but needs no particular Python."""
import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: "dict[str, Any]") -> None:
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{os.environ['FREEHOLD_WHEEL_MACHINE']}"
