// SPDX-License-Identifier: MIT
/* For test programs that GoogleTest cannot be linked into: C, another C++ library, no C++ library, static. */
#ifndef FREEHOLD_TESTS_LINKING_CHECK_H
#define FREEHOLD_TESTS_LINKING_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with a failure that says where. */
#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      _Exit(EXIT_FAILURE);                                                          \
    }                                                                               \
  } while (0)

static inline int reads_back(const unsigned char* block, size_t bytes, unsigned char value) {
  for (size_t i = 0; i < bytes; ++i)
    if (block[i] != value) return 0;
  return 1;
}

#endif
