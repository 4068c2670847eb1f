// SPDX-License-Identifier: MIT
// It would define operator new and delete, which come from the malloc under test.
#include <new>

#include "tests/suites/snmalloc/test/snmalloc_testlib.h"

#define EXCEPTSPEC noexcept
