// SPDX-License-Identifier: MIT
/* Threads, whose functions return an error that nobody expects. */
#ifndef FREEHOLD_SUITES_GLIBC_XTHREAD_H
#define FREEHOLD_SUITES_GLIBC_XTHREAD_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <signal.h>

#include "tests/suites/glibc/support/check.h"

static inline void foreign_no_error(int error) {
  if (error != 0) FAIL_EXIT1("%s", strerror(error));
}
static inline pthread_t xpthread_create(pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  pthread_t thread;
  foreign_no_error(pthread_create(&thread, attributes, body, argument));
  return thread;
}
static inline void* xpthread_join(pthread_t thread) {
  void* result;
  foreign_no_error(pthread_join(thread, &result));
  return result;
}
static inline void xpthread_barrier_init(pthread_barrier_t* b, pthread_barrierattr_t* a, unsigned n) {
  foreign_no_error(pthread_barrier_init(b, a, n));
}
static inline void xpthread_barrier_destroy(pthread_barrier_t* b) { foreign_no_error(pthread_barrier_destroy(b)); }
static inline int xpthread_barrier_wait(pthread_barrier_t* b) {
  const int result = pthread_barrier_wait(b);
  if (result != PTHREAD_BARRIER_SERIAL_THREAD) foreign_no_error(result);
  return result;
}
static inline void xpthread_barrierattr_init(pthread_barrierattr_t* a) { foreign_no_error(pthread_barrierattr_init(a)); }
static inline void xpthread_barrierattr_destroy(pthread_barrierattr_t* a) {
  foreign_no_error(pthread_barrierattr_destroy(a));
}
static inline void xpthread_barrierattr_setpshared(pthread_barrierattr_t* a, int shared) {
  foreign_no_error(pthread_barrierattr_setpshared(a, shared));
}
static inline void xpthread_kill(pthread_t thread, int signal) { foreign_no_error(pthread_kill(thread, signal)); }

#endif
