// SPDX-License-Identifier: MIT
/* jemalloc's way to write a test, on the system's malloc. A check that fails is printed with the name of its test. mallctl
   knows what the tests that run here ask it: to purge, for the largest size, and to make arenas, which are all the same one.
 */
#ifndef FREEHOLD_SUITES_JEMALLOC_TEST_H
#define FREEHOLD_SUITES_JEMALLOC_TEST_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LG_SIZEOF_PTR 3
#define SIZE_T_MAX SIZE_MAX
#define ZU(number) ((size_t)(number))
#define BUFERROR_BUF 64
#define TEST_MALLOC_SIZE malloc_usable_size
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN

/* ---- tests and checks ---- */

typedef void test_t(void);

static const char* suite_test_now;
static int suite_failures;

static void suite_complain(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ++suite_failures;
  printf("FAILED: %s: %s:%d: ", suite_test_now, file, line);
  vprintf(format, arguments);
  puts("");
  fflush(stdout);
  va_end(arguments);
}

#define TEST_BEGIN(name)   \
  static void name(void) { \
    suite_test_now = #name;
#define TEST_END   \
  label_test_end:; \
  }

#define test_fail(...) suite_complain(__FILE__, __LINE__, __VA_ARGS__)
#define test_skip(...) (printf(__VA_ARGS__), puts(""))
#define test_skip_if(condition)          \
  do {                                   \
    if (condition) {                     \
      test_skip("skipped: " #condition); \
      goto label_test_end;               \
    }                                    \
  } while (0)

#define suite_expect(condition, ...)        \
  do {                                      \
    if (!(condition)) {                     \
      printf("not true: %s\n", #condition); \
      test_fail(__VA_ARGS__);               \
    }                                       \
  } while (0)
#define expect_true(a, ...) suite_expect((a), __VA_ARGS__)
#define expect_false(a, ...) suite_expect(!(a), __VA_ARGS__)
#define expect_d_eq(a, b, ...) suite_expect((int)(a) == (int)(b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) suite_expect((int)(a) != (int)(b), __VA_ARGS__)
#define expect_u64_gt(a, b, ...) suite_expect((uint64_t)(a) > (uint64_t)(b), __VA_ARGS__)
#define expect_zu_ge(a, b, ...) suite_expect((size_t)(a) >= (size_t)(b), __VA_ARGS__)
#define expect_ptr_null(a, ...) suite_expect((a) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(a, ...) suite_expect((a) != NULL, __VA_ARGS__)
#define assert(condition) suite_expect((condition), "an assertion")

static inline int suite_run_tests(test_t* first, ...) {
  va_list tests;
  va_start(tests, first);
  for (test_t* one = first; one != NULL; one = va_arg(tests, test_t*)) one();
  va_end(tests);
  return suite_failures == 0 ? 0 : 1;
}
#define test(...) suite_run_tests(__VA_ARGS__, (test_t*)NULL)
#define test_no_reentrancy test
#define test_no_malloc_init test

/* ---- errno and threads ---- */

static inline void set_errno(int error) { errno = error; }
static inline int get_errno(void) { return errno; }
static inline int buferror(int error, char* text, size_t bytes) { return snprintf(text, bytes, "errno %d", error); }

typedef pthread_t thd_t;
static inline void thd_create(thd_t* thread, void* (*body)(void*), void* argument) {
  if (pthread_create(thread, NULL, body, argument) != 0) test_fail("pthread_create");
}
static inline void thd_join(thd_t thread, void** result) { pthread_join(thread, result); }

/* ---- jemalloc's own calls ---- */

static const bool config_stats = false;

static inline int mallctl(const char* name, void* former, size_t* former_bytes, void* wanted, size_t wanted_bytes) {
  const unsigned one = 1;
  (void)wanted, (void)wanted_bytes;
  if (strstr(name, "purge") != NULL) {
    malloc_trim(0);
  } else if (former != NULL && former_bytes != NULL && *former_bytes == sizeof one) {
    memcpy(former, &one, sizeof one); /* one size above all, one arena */
  } else {
    return ENOENT;
  }
  return 0;
}
static inline int mallctlnametomib(const char* name, size_t* numbers, size_t* count) {
  (void)numbers, (void)count;
  return strcmp(name, "arenas.lextent.0.size") == 0 ? 0 : ENOENT;
}
/* The largest size there may be. */
static inline int mallctlbymib(const size_t* numbers, size_t count, void* former, size_t* former_bytes, void* wanted,
                               size_t bytes) {
  const size_t largest = PTRDIFF_MAX;
  (void)numbers, (void)count, (void)former_bytes, (void)wanted, (void)bytes;
  memcpy(former, &largest, sizeof largest);
  return 0;
}

#define MALLOCX_ALIGN(alignment) ((int)__builtin_ctzll(alignment))
#define MALLOCX_ZERO 0x40

static inline size_t suite_alignment(int flags) { return (size_t)1 << (flags & 0x3f); }
static inline size_t nallocx(size_t bytes, int flags) {
  (void)flags;
  return bytes;
}
static inline void* mallocx(size_t bytes, int flags) {
  if (suite_alignment(flags) == 1) return (flags & MALLOCX_ZERO) != 0 ? calloc(1, bytes) : malloc(bytes);
  void* const block = aligned_alloc(suite_alignment(flags), bytes);
  if (block != NULL && (flags & MALLOCX_ZERO) != 0) memset(block, 0, bytes);
  return block;
}

/* C23's; glibc has them since 2.43. */
#if defined(__cplusplus)
extern "C" {
#endif
extern void free_sized(void* block, size_t bytes) __attribute__((weak));
extern void free_aligned_sized(void* block, size_t alignment, size_t bytes) __attribute__((weak));
#if defined(__cplusplus)
}
#endif
static inline void sdallocx(void* block, size_t bytes, int flags) {
  const bool aligned = suite_alignment(flags) != 1;
  if (aligned && free_aligned_sized != NULL) {
    free_aligned_sized(block, suite_alignment(flags), bytes);
  } else if (!aligned && free_sized != NULL) {
    free_sized(block, bytes);
  } else {
    free(block);
  }
}

#endif
