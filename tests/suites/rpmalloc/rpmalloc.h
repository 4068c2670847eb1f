// SPDX-License-Identifier: MIT
/* rpmalloc's interface as its tests use it, on the system's malloc. */
#ifndef FREEHOLD_SUITES_RPMALLOC_H
#define FREEHOLD_SUITES_RPMALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RPMALLOC_CDECL
#define RPMALLOC_GROW_OR_FAIL 1

#if defined(__cplusplus)
extern "C" {
#endif
extern size_t malloc_usable_size(void* block);
#if defined(__cplusplus)
}
#endif

typedef struct rpmalloc_config_t {
  size_t page_size;
  size_t span_map_count;
  void (*error_callback)(const char* message);
} rpmalloc_config_t;

static inline const rpmalloc_config_t* rpmalloc_config(void) {
  static rpmalloc_config_t config;
  config.page_size = (size_t)sysconf(_SC_PAGESIZE);
  return &config;
}
static inline int rpmalloc_initialize(void) { return 0; }
static inline int rpmalloc_initialize_config(const rpmalloc_config_t* config) { return (void)config, 0; }
static inline void rpmalloc_finalize(void) {}
static inline void rpmalloc_thread_initialize(void) {}
static inline void rpmalloc_thread_finalize(int release) { (void)release; }

static inline void* rpmalloc(size_t bytes) { return malloc(bytes); }
static inline void rpfree(void* block) { free(block); }
static inline void* rprealloc(void* block, size_t bytes) { return realloc(block, bytes); }
static inline size_t rpmalloc_usable_size(void* block) { return malloc_usable_size(block); }
static inline void* rpaligned_alloc(size_t alignment, size_t bytes) {
  return alignment <= 16 ? malloc(bytes) : aligned_alloc(alignment, bytes);
}
static inline void* rpaligned_realloc(void* former, size_t alignment, size_t bytes, size_t former_bytes, unsigned flags) {
  const size_t usable = malloc_usable_size(former);
  (void)former_bytes;
  if ((flags & RPMALLOC_GROW_OR_FAIL) != 0) return bytes <= usable ? former : NULL;
  void* const block = rpaligned_alloc(alignment, bytes);
  if (block == NULL) return NULL;
  if (former != NULL) memcpy(block, former, usable < bytes ? usable : bytes);
  free(former);
  return block;
}

#endif
