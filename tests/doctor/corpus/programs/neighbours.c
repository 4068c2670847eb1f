// SPDX-License-Identifier: MIT
// The main thread allocates a small counter for each thread, one malloc after the other; each thread counts in its own.
// glibc puts 24 bytes into 32: two counters share a cache line. With 200 bytes they lie on lines of their own; nothing else
// differs.
#include "tests/doctor/corpus/programs/common.h"

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
