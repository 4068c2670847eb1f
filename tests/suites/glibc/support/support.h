// SPDX-License-Identifier: MIT
/* Calls that end the test when they fail. */
#ifndef FREEHOLD_SUITES_GLIBC_SUPPORT_H
#define FREEHOLD_SUITES_GLIBC_SUPPORT_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suites/glibc/support/check.h"

static inline void* foreign_got(void* block) {
  TEST_VERIFY_EXIT(block != NULL);
  return block;
}
static inline void* xmalloc(size_t bytes) { return foreign_got(malloc(bytes)); }
static inline void* xcalloc(size_t count, size_t bytes) { return foreign_got(calloc(count, bytes)); }
static inline void* xrealloc(void* block, size_t bytes) { return foreign_got(realloc(block, bytes)); }
static inline char* xstrdup(const char* text) { return (char*)foreign_got(strdup(text)); }

/* For handlers of signals. */
static inline void write_message(const char* text) {
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(1);
}

/* Memory that children of fork share. */
static inline void* support_shared_allocate(size_t bytes) {
  size_t* const mapping = (size_t*)mmap(NULL, bytes + 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  TEST_VERIFY_EXIT(mapping != MAP_FAILED);
  *mapping = bytes + 64;
  return mapping + 8;
}
static inline void support_shared_free(void* shared) {
  size_t* const mapping = (size_t*)shared - 8;
  munmap(mapping, *mapping);
}

#endif
