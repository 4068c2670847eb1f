// SPDX-License-Identifier: MIT
// Does: threads allocate and free blocks of their own; mallopt leaves glibc one arena for all of them.
// Why:  by construction nothing but malloc is shared: no data, no lock of the program's. glibc takes the arena's lock for
//       each block that its thread cache does not hold: those above 1032 bytes, and every batch longer than seven.
// Case one_arena_large: {n} large 5000000
//   Truth: allocator-lock
//   Right: allocator-lock
//   Seen: 2 threads 0.6 times as fast as 1; jemalloc 6.7, mimalloc 6.9, tcmalloc 31 times as fast as glibc (busy machine)
// Case one_arena_batch: {n} batch 9000000
//   Truth: allocator-lock
//   Right: allocator-lock
//   Seen: 2 threads 0.8 times as fast as 1; jemalloc 6.3, mimalloc 4.9, tcmalloc 6.3 times as fast as glibc (busy machine)
// Case one_arena_calloc: {n} calloc 5000000
//   Truth: allocator-lock
//   Right: allocator-lock
//   Seen: jemalloc 1.6, mimalloc 1.6, tcmalloc 1.8 times as fast as glibc while only one CPU was free, so the lock was not
//       yet waited for
#include <malloc.h>

#include "tests/doctor/blind/programs/common.h"

enum { kLive = 64, kBatch = 400 };
static long pairs_of_each;
static const char* mode;

static void large_blocks(unsigned seed, int zeroed) {
  char* live[kLive] = {0};
  for (long i = 0; i < pairs_of_each; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const size_t bytes = 1100 + (seed >> 20);
    char** slot = &live[(seed >> 8) % kLive];
    free(*slot);
    *slot = zeroed ? calloc(1, bytes) : malloc(bytes);
    (*slot)[0] = 1;
  }
  for (int i = 0; i < kLive; ++i) free(live[i]);
}

static void batches(void) {
  char* live[kBatch];
  for (long i = 0; i < pairs_of_each / kBatch; ++i) {
    for (int k = 0; k < kBatch; ++k) (live[k] = malloc(200))[0] = 1;
    for (int k = 0; k < kBatch; ++k) free(live[k]);
  }
}

static void* work(void* index) {
  if (!strcmp(mode, "batch"))
    batches();
  else
    large_blocks((unsigned)(size_t)index + 7, !strcmp(mode, "calloc"));
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  mode = argv[2];
  pairs_of_each = atol(argv[3]) / threads;
  mallopt(M_ARENA_MAX, 1);
  in_threads(threads, work);
  printf("%s: %ld blocks by each of %d threads\n", mode, pairs_of_each, threads);
}
