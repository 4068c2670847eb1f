// SPDX-License-Identifier: MIT
/* It makes malloc mean mi_malloc, which is malloc. */
#include "tests/suites/mimalloc/mimalloc.h"
