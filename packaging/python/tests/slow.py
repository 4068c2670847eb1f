# SPDX-License-Identifier: MIT
"""How many times as long the limits of these tests are: ten times under an emulator, as for the real programs (tests/real/run.py)."""
import os

TIMES = 10 if os.environ.get("FREEHOLD_TEST_SLOW") else 1
