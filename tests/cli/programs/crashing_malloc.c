// SPDX-License-Identifier: MIT
/* An allocator that works until a second thread asks: then it dies. `freehold scale` must survive it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);

void* malloc(size_t bytes) {
  if (gettid() != getpid()) abort();
  return __libc_malloc(bytes);
}
