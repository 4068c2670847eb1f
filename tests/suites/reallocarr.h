// SPDX-License-Identifier: MIT
/* NetBSD's reallocarr on the system's realloc: an error is returned, and the block stays as it was; errno stays, too. */
#ifndef FREEHOLD_SUITES_REALLOCARR_H
#define FREEHOLD_SUITES_REALLOCARR_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static inline int reallocarr(void* place, size_t count, size_t bytes) {
  const int former_errno = errno;
  void* block;
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return EOVERFLOW;
  memcpy(&block, place, sizeof block);
  if (total == 0) {
    free(block);
    block = NULL;
  } else {
    block = realloc(block, total);
    if (block == NULL) {
      errno = former_errno;
      return ENOMEM;
    }
  }
  memcpy(place, &block, sizeof block);
  return 0;
}

#endif
