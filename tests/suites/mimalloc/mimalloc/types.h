// SPDX-License-Identifier: MIT
/* Where newer releases have the constants. */
#include "tests/suites/mimalloc/mimalloc-types.h"
