// SPDX-License-Identifier: MIT
// Threads let a buffer grow by realloc in small steps, and free it. `steps`: beyond the threshold glibc moves the mapping by
// mremap at each step, and each page is faulted in anew in each round, both under the lock of the address space. `small`:
// within the arena, by copying; that scales.
#include "tests/doctor/corpus/programs/common.h"

static int by_small_steps;
static long rounds;

static void grow(size_t step, size_t limit) {
  char* buffer = NULL;
  for (size_t bytes = step; bytes <= limit; bytes += step) {
    buffer = realloc(buffer, bytes);
    memset(buffer + bytes - step, 1, step);
  }
  free(buffer);
}

static void* work(void* unused) {
  for (long i = 0; i < rounds; ++i) by_small_steps ? grow(100, 6000) : grow(16 << 10, 36 << 20);
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  by_small_steps = !strcmp(argv[2], "small");
  rounds = atol(argv[3]) / threads;
  in_threads(threads, work);
  printf("%ld buffers by each of %d threads\n", rounds, threads);
}
