// SPDX-License-Identifier: MIT
#include "tests/suites/gperftools/tcmalloc.h"
