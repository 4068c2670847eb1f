// SPDX-License-Identifier: MIT
/* Older tests include this at their end; TEST_FUNCTION is a whole call there, not a name. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/suites/glibc/support/support.h"

#if defined(TEST_FUNCTION)
static int foreign_old_test(void) { return TEST_FUNCTION; }
#undef TEST_FUNCTION
#define TEST_FUNCTION foreign_old_test
#endif

#include "tests/suites/glibc/support/test-driver.c"
