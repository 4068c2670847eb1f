// SPDX-License-Identifier: MIT
/* mimalloc's interface as its tests use it, on the system's malloc: what malloc can do under another name. Heaps are no more
   than malloc here, so what a test says of heaps says nothing. */
#ifndef FREEHOLD_SUITES_MIMALLOC_H
#define FREEHOLD_SUITES_MIMALLOC_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites/reallocarr.h"

#define MI_SMALL_SIZE_MAX 1024

/* ---- malloc under another name ---- */

#define mi_malloc malloc
#define mi_malloc_small malloc
#define mi_calloc calloc
#define mi_realloc realloc
#define mi_reallocarray reallocarray
#define mi_free free
#define mi_usable_size malloc_usable_size
#define mi_posix_memalign posix_memalign
#define mi_memalign memalign
#define mi_realpath realpath
#define mi_mallocn_tp(type, count) ((type*)mi_mallocn((count), sizeof(type)))

static inline void* mi_mallocn(size_t count, size_t bytes) { return reallocarray(NULL, count, bytes); }
static inline void* mi_zalloc(size_t bytes) { return calloc(1, bytes); }
static inline void* mi_zalloc_small(size_t bytes) { return calloc(1, bytes); }
static inline void mi_collect(bool force) { malloc_trim(force ? 0 : 1 << 20); }

/* ---- realloc that fills with zeros what it adds ---- */

static inline void* suite_moved(void* former, void* block, size_t former_usable, size_t bytes) {
  if (block == NULL) return NULL;
  memset(block, 0, bytes);
  memcpy(block, former, former_usable < bytes ? former_usable : bytes);
  free(former);
  return block;
}
static inline void* mi_rezalloc(void* former, size_t bytes) {
  return suite_moved(former, malloc(bytes), malloc_usable_size(former), bytes);
}
static inline void* mi_recalloc(void* former, size_t count, size_t bytes) { return mi_rezalloc(former, count * bytes); }

/* ---- aligned blocks ---- */

static inline void* mi_malloc_aligned(size_t bytes, size_t alignment) { return aligned_alloc(alignment, bytes); }
/* The address at an offset is to be aligned: malloc can do it only where the block is aligned, too. */
static inline void* mi_malloc_aligned_at(size_t bytes, size_t alignment, size_t offset) {
  return offset % alignment == 0 ? aligned_alloc(alignment, bytes) : NULL;
}
static inline void* mi_zalloc_aligned(size_t bytes, size_t alignment) {
  void* const block = aligned_alloc(alignment, bytes);
  return block == NULL ? NULL : memset(block, 0, bytes);
}
static inline void* mi_calloc_aligned(size_t count, size_t bytes, size_t alignment) {
  return mi_zalloc_aligned(count * bytes, alignment);
}
static inline void* mi_rezalloc_aligned(void* former, size_t bytes, size_t alignment) {
  return suite_moved(former, aligned_alloc(alignment, bytes), malloc_usable_size(former), bytes);
}
static inline void* mi_recalloc_aligned(void* former, size_t count, size_t bytes, size_t alignment) {
  return mi_rezalloc_aligned(former, count * bytes, alignment);
}

/* ---- heaps and options ---- */

typedef struct mi_heap_s {
  int unused;
} mi_heap_t;
static inline mi_heap_t* mi_heap_new(void) { return (mi_heap_t*)malloc(sizeof(mi_heap_t)); }
static inline void mi_heap_delete(mi_heap_t* heap) { free(heap); }
static inline void mi_heap_destroy(mi_heap_t* heap) { free(heap); }
static inline void* mi_heap_malloc(mi_heap_t* heap, size_t bytes) { return (void)heap, malloc(bytes); }
static inline void* mi_heap_malloc_aligned(mi_heap_t* heap, size_t bytes, size_t alignment) {
  return (void)heap, aligned_alloc(alignment, bytes);
}
static inline bool mi_heap_contains_block(mi_heap_t* heap, const void* block) { return (void)heap, block != NULL; }
#define mi_heap_malloc_tp(heap, type) ((type*)mi_heap_malloc((heap), sizeof(type)))

#define mi_option_disable(option) ((void)0)
#define mi_version() ((void)0)
#define mi_stats_reset() ((void)0)
#define mi_stats_print(out) ((void)0)

#endif
