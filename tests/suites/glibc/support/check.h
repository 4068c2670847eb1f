// SPDX-License-Identifier: MIT
/* Checks: the first three go on after a failure, the others end the test. */
#ifndef FREEHOLD_SUITES_GLIBC_CHECK_H
#define FREEHOLD_SUITES_GLIBC_CHECK_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_UNSUPPORTED 77

/* In memory that children of fork share, since their failures are the test's. */
extern volatile int* foreign_failures;

#define FAIL(...) (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), puts(""), (void)(*foreign_failures += 1))
#define TEST_VERIFY(condition) ((condition) ? (void)0 : FAIL("not true: %s", #condition))
#define TEST_COMPARE(left, right)                                                                       \
  do {                                                                                                  \
    __typeof__(left) foreign_left = (left);                                                             \
    __typeof__(right) foreign_right = (right);                                                          \
    if (!(foreign_left == foreign_right))                                                               \
      FAIL("%s is %lld, %s is %lld", #left, (long long)foreign_left, #right, (long long)foreign_right); \
  } while (0)
#define TEST_COMPARE_STRING(left, right) TEST_VERIFY(strcmp((left), (right)) == 0)

#define FAIL_EXIT(code, ...) (FAIL(__VA_ARGS__), exit(code))
#define FAIL_EXIT1(...) FAIL_EXIT(1, __VA_ARGS__)
#define FAIL_RET(...)  \
  do {                 \
    FAIL(__VA_ARGS__); \
    return 1;          \
  } while (0)
#define FAIL_UNSUPPORTED(...) (printf(__VA_ARGS__), puts(""), exit(EXIT_UNSUPPORTED))
#define TEST_VERIFY_EXIT(condition) ((condition) ? (void)0 : FAIL_EXIT1("not true: %s", #condition))

#endif
