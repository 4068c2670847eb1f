// SPDX-License-Identifier: MIT
/* tbbmalloc's C interface on the system's malloc. Where tbbmalloc is stricter than malloc (aligned blocks of size zero, bad
   alignments), the test's rules are kept here. */
#ifndef FREEHOLD_SUITES_ONETBB_SCALABLE_ALLOCATOR_H
#define FREEHOLD_SUITES_ONETBB_SCALABLE_ALLOCATOR_H

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TBBMALLOC_OK 0
#define TBBMALLOC_INVALID_PARAM 1
#define TBBMALLOC_NO_EFFECT 4
#define TBBMALLOC_USE_HUGE_PAGES 0
#define TBBMALLOC_SET_SOFT_HEAP_LIMIT 1
#define TBBMALLOC_CLEAN_ALL_BUFFERS 0
#define TBBMALLOC_CLEAN_THREAD_BUFFERS 1

static inline void* scalable_malloc(size_t bytes) { return malloc(bytes); }
static inline void* scalable_calloc(size_t count, size_t bytes) { return calloc(count, bytes); }
static inline void* scalable_realloc(void* block, size_t bytes) { return realloc(block, bytes); }
static inline void scalable_free(void* block) { free(block); }
static inline int scalable_posix_memalign(void** block, size_t alignment, size_t bytes) {
  return posix_memalign(block, alignment, bytes);
}

static inline void* scalable_aligned_malloc(size_t bytes, size_t alignment) {
  if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = EINVAL;
    return NULL;
  }
  return aligned_alloc(alignment, bytes);
}
static inline void scalable_aligned_free(void* block) { free(block); }
static inline void* scalable_aligned_realloc(void* former, size_t bytes, size_t alignment) {
  if (bytes == 0 && former != NULL) {
    free(former);
    return NULL;
  }
  void* const block = scalable_aligned_malloc(bytes, alignment);
  if (block == NULL || former == NULL) return block;
  const size_t usable = malloc_usable_size(former);
  memcpy(block, former, usable < bytes ? usable : bytes);
  free(former);
  return block;
}

static inline int scalable_allocation_mode(int mode, intptr_t value) { return (void)mode, (void)value, TBBMALLOC_OK; }
static inline int scalable_allocation_command(int command, void* parameter) {
  if (parameter != NULL) return TBBMALLOC_INVALID_PARAM;
  if (command != TBBMALLOC_CLEAN_ALL_BUFFERS) return TBBMALLOC_NO_EFFECT;
  malloc_trim(0);
  return TBBMALLOC_OK;
}

#endif
