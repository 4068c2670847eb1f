// SPDX-License-Identifier: MIT
/* Another LD_PRELOAD library that wraps malloc, as tracers and leak finders do: it counts calls and passes them on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

static unsigned long mallocs, frees;

EXPORT void* malloc(size_t bytes) {
  static void* (*next)(size_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "malloc");
  __atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
  return next(bytes);
}

EXPORT void free(void* block) {
  static void (*next)(void*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "free");
  __atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
  next(block);
}

EXPORT void shim_counts(unsigned long* malloc_calls, unsigned long* free_calls) {
  *malloc_calls = mallocs;
  *free_calls = frees;
}
