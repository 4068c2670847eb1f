// SPDX-License-Identifier: MIT
/* Files in the test's folder, which is removed after the test. */
#ifndef FREEHOLD_SUITES_GLIBC_TEMP_FILE_H
#define FREEHOLD_SUITES_GLIBC_TEMP_FILE_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "tests/suites/glibc/support/support.h"

static inline int create_temp_file(const char* base, char** name) {
  char pattern[256];
  snprintf(pattern, sizeof pattern, "%s-XXXXXX", base);
  const int file = mkstemp(pattern);
  if (file >= 0 && name != NULL) *name = xstrdup(pattern);
  return file;
}
static inline void add_temp_file(const char* name) { (void)name; }

#endif
