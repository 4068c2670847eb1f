#!/bin/sh
# SPDX-License-Identifier: MIT
# Any dynamically linked program under Freehold, as it is. FREEHOLD_VERBOSE=1 says in one line that it is active.
#   examples/preload.sh build/release/libfreehold.so PROGRAM ARGS...
# `freehold run -- PROGRAM ARGS...` does the same, and says why where it cannot be done.
library=$1
shift
FREEHOLD_VERBOSE=1 LD_PRELOAD=$library exec "$@"
