// SPDX-License-Identifier: MIT
/* main() of a test: included at its end, after it has defined do_test(), or TEST_FUNCTION and EXPECTED_SIGNAL. */
#include <unistd.h>

#include "tests/suites/glibc/support/support.h"
#include "tests/suites/glibc/support/test-driver.h"

#if !defined(TEST_FUNCTION)
#define TEST_FUNCTION do_test
#endif

volatile int* foreign_failures;

int main(int argc, char** argv) {
  (void)argc, (void)argv;
  setvbuf(stdout, NULL, _IOLBF, 0);
  foreign_failures = (volatile int*)support_shared_allocate(sizeof(int));
#if defined(TEST_FUNCTION_ARGV)
  const int result = TEST_FUNCTION_ARGV(argc, argv);
#else
  const int result = TEST_FUNCTION();
#endif
#if defined(EXPECTED_SIGNAL)
  return 99; /* a signal was to end it; the script takes that for a pass, and this for a failure */
#endif
  return result == 0 && *foreign_failures != 0 ? 1 : result;
}
