// SPDX-License-Identifier: MIT
/* Checks that end the program. */
#ifndef FREEHOLD_SUITES_GPERFTOOLS_LOGGING_H
#define FREEHOLD_SUITES_GPERFTOOLS_LOGGING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))

enum { INFO, WARNING, ERROR, FATAL };
#define LOG(severity, ...) (fprintf(stderr, __VA_ARGS__), (severity) == FATAL ? exit(1) : (void)0)
#define VLOG(level, ...) ((void)0)

#endif
