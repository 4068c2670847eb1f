// SPDX-License-Identifier: MIT
// Does: the main thread allocates a small counter for each thread, one malloc after the other; each thread counts
//       in its own.
// Why:  glibc puts 24 bytes into 32: two counters share a cache line, and each write takes the line from the other thread.
//       With a size of 200 they lie on lines of their own (the last case); nothing else differs.
// Case neighbours_8: {n} 8 1500000000
//   Truth: allocator-false-sharing
//   Right: allocator-false-sharing
//   Seen: strace -f -c: 2 futex calls, both at start and end; no mmap, madvise or brk besides start-up
// Case neighbours_24_env: 24 1500000000
//   Truth: allocator-false-sharing
//   Right: allocator-false-sharing
//   Env: COUNTERS={n}
// Case neighbours_apart: {n} 200 8000000000
//   Truth: none
//   Right: none
#include "tests/doctor/blind/programs/common.h"

static long counts_of_each;
static long* counters[64];

static void* work(void* index) {
  volatile long* count = counters[(long)index];
  for (long i = 0; i < counts_of_each; ++i) *count = *count + 1;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* from_environment = getenv("COUNTERS");
  const int threads = from_environment ? atoi(from_environment) : atoi(argv[1]);
  const size_t bytes = strtoul(argv[argc - 2], NULL, 10);
  counts_of_each = atol(argv[argc - 1]) / threads;
  for (int i = 0; i < threads; ++i) *(counters[i] = malloc(bytes)) = 0;
  in_threads(threads, work);
  printf("%ld counted first of %d\n", *counters[0], threads);
}
