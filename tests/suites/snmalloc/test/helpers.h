// SPDX-License-Identifier: MIT
// Checks of snmalloc's tests. Its own blocks have the alignment of their size; malloc promises that of any type.
#ifndef FREEHOLD_SUITES_SNMALLOC_HELPERS_H
#define FREEHOLD_SUITES_SNMALLOC_HELPERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define natural_alignment(bytes) alignof(max_align_t)

#define START_TEST(...) ((void)0)
#define INFO(...) ((void)0)
#define EXPECT(condition, ...)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: check failed: %s (%s)\n", __FILE__, __LINE__, #condition, __func__); \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

inline bool is_aligned(const void* block, size_t alignment) { return reinterpret_cast<uintptr_t>(block) % alignment == 0; }

#endif
