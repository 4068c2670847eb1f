// SPDX-License-Identifier: MIT
/* Processes and files, whose functions set errno when they fail. */
#ifndef FREEHOLD_SUITES_GLIBC_XUNISTD_H
#define FREEHOLD_SUITES_GLIBC_XUNISTD_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suites/glibc/support/check.h"

static inline pid_t foreign_not_negative(pid_t result) {
  if (result < 0) FAIL_EXIT1("%s", strerror(errno));
  return result;
}
static inline pid_t xfork(void) { return foreign_not_negative(fork()); }
static inline int xwaitpid(pid_t pid, int* status, int flags) { return foreign_not_negative(waitpid(pid, status, flags)); }
static inline void xclose(int file) { foreign_not_negative(close(file)); }
static inline void xpipe(int files[2]) { foreign_not_negative(pipe(files)); }
static inline int xdup2(int from, int to) { return foreign_not_negative(dup2(from, to)); }
static inline int xopen(const char* path, int flags, mode_t mode) { return foreign_not_negative(open(path, flags, mode)); }
static inline void* xmmap(void* where, size_t bytes, int protection, int flags, int file) {
  void* const mapping = mmap(where, bytes, protection, flags, file, 0);
  TEST_VERIFY_EXIT(mapping != MAP_FAILED);
  return mapping;
}
static inline void xmunmap(void* where, size_t bytes) { foreign_not_negative(munmap(where, bytes)); }
static inline long xsysconf(int name) { return sysconf(name); }

#endif
