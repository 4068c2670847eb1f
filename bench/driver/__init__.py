# SPDX-License-Identifier: MIT
"""The driver of `script/bench`: runs mallocs side by side and compares their times and their memory."""
