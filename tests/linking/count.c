/* SPDX-License-Identifier: MIT
 * Exact counts of a thread, by each way to a block, while other threads allocate: the same numbers each time. Run in each of
 * malloc's modes. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "freehold/malloc.h"
#include "tests/linking/check.h"

enum { kOthers = 8, kRounds = 1000, kPages = 1 << 20 };
static volatile int g_ends;

static void* volatile g_block;
static void* keep(void* block) { return g_block = block; }

static void* allocate_all_the_time(void* unused) {
  unsigned seed = 1;
  while (!g_ends) {
    seed = seed * 1103515245 + 12345;
    free(memset(malloc(seed % 5000 + 1), 1, 1));
  }
  return unused;
}

/* 7 allocations and 7 frees; the bytes that they are. */
static size_t calls(void) {
  void* posix = NULL;
  char* small = keep(malloc(24));
  char* zeroed = keep(calloc(3, 100));
  char* aligned = keep(aligned_alloc(256, 512));
  char* run = keep(malloc(100000));
  char* mapped = keep(calloc(3, kPages));
  if (posix_memalign(&posix, 8192, 40000) != 0) return 0;
  size_t bytes = malloc_usable_size(small) + malloc_usable_size(zeroed) + malloc_usable_size(aligned) +
                 malloc_usable_size(run) + malloc_usable_size(mapped) + malloc_usable_size(posix);
  small = realloc(small, 2000);
  bytes += malloc_usable_size(small);
  free(small), free(zeroed), free(aligned), free(run), free(mapped), free(posix), free(NULL);
  return bytes;
}

static void* ends_while_it_counts(void* unused) {
  (void)freehold_count_begin(FREEHOLD_COUNT);
  (void)freehold_count_begin(FREEHOLD_COUNT);
  free(keep(malloc(100)));
  return unused;
}

static void* first_call_is_counted(void* unused) {
  freehold_count_t count;
  if (freehold_count_begin(FREEHOLD_COUNT) != 0) return NULL;
  free(keep(malloc(40)));
  return freehold_count_end(&count, sizeof count) == 0 && count.allocations == 1 && count.frees == 1 ? unused : NULL;
}

int main(void) {
  freehold_count_t count, outer;
  pthread_t others[kOthers];
  void* result = NULL;
  CHECK(freehold_count_end(&count, sizeof count) == -1 && errno == EINVAL);
  CHECK(freehold_count_begin(3) == -1 && errno == EINVAL);
  CHECK(pthread_create(&others[0], NULL, first_call_is_counted, &count) == 0);
  CHECK(pthread_join(others[0], &result) == 0 && result == &count);
  for (int i = 0; i < kOthers; ++i) CHECK(pthread_create(&others[i], NULL, allocate_all_the_time, NULL) == 0);

  char* const older = malloc(1000);
  for (int round = 0; round < kRounds; ++round) {
    CHECK(freehold_count_begin(FREEHOLD_COUNT) == 0);
    const size_t bytes = calls();
    CHECK(freehold_count_end(&count, sizeof count) == 0);
    CHECK(bytes != 0 && count.size == sizeof count && count.allocations == 7 && count.frees == 7);
    CHECK(count.allocated_bytes == bytes && count.freed_bytes == bytes && count.peak_bytes <= bytes);
    CHECK(count.peak_bytes >= 100000 + 3 * kPages + 40000);
  }

  /* A count within a count; what is older counts as freed. */
  CHECK(freehold_count_begin(FREEHOLD_COUNT) == 0);
  free(keep(malloc(10)));
  CHECK(freehold_count_begin(FREEHOLD_COUNT) == 0);
  const size_t older_bytes = malloc_usable_size(older);
  free(older);
  CHECK(freehold_count_end(&count, sizeof count) == 0);
  CHECK(freehold_count_end(&outer, sizeof outer.size + sizeof outer.allocations) == 0 && outer.allocations == 1);
  CHECK(count.allocations == 0 && count.frees == 1 && count.freed_bytes == older_bytes && count.peak_bytes == 0);

  /* A fork amid a count: both go on. Maintenance amid one. */
  CHECK(freehold_count_begin(FREEHOLD_COUNT) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  (void)freehold_trim();
  (void)freehold_idle();
  keep(malloc(3 << 20));
  CHECK(freehold_count_end(&count, sizeof count) == 0 && count.allocations == 1 && count.frees == 0);
  free(g_block);
  if (child == 0) _exit(0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);

  CHECK(pthread_create(&others[0], NULL, ends_while_it_counts, NULL) == 0);
  CHECK(pthread_join(others[0], NULL) == 0);
  g_ends = 1;
  return 0;
}
