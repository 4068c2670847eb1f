// SPDX-License-Identifier: MIT
// Does: twelve threads, one after the other, build and drop 40 MB of small blocks, and keep the last few; then all compute
// side by side.
// Why:  each thread's peak lies in another arena, and the blocks that it keeps at the top hold it back: 12 peaks instead of
// one.
//       Only memory is lost: building takes a few per cent of the time. MALLOC_ARENA_MAX=1 takes a fraction of the memory,
//       see below.
// Case arena_turns: 12 1200000000
//   Truth: arena-bloat
//   Right: arena-bloat none
//   Seen: 2 threads 1.96 times as fast as 1; 350 MiB for a peak of 40 MB of blocks
#include "tests/doctor/blind/programs/common.h"

enum { kBlocks = 40000, kBytes = 1000 };
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static long steps_of_each;

static void build_and_drop(void) {
  char** blocks = malloc(kBlocks * sizeof *blocks);
  for (int i = 0; i < kBlocks; ++i) (blocks[i] = malloc(kBytes))[0] = 1;
  for (int i = 0; i < kBlocks - 8; ++i) free(blocks[i]);
  free(blocks);
}

static void* work(void* unused) {
  pthread_mutex_lock(&turn);
  build_and_drop();
  pthread_mutex_unlock(&turn);
  return (void*)(uintptr_t)mix(88172645463325252u + (uintptr_t)unused, steps_of_each);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = atoi(argv[1]);
  steps_of_each = atol(argv[2]) / threads;
  printf("%p\n", in_threads(threads, work));
}
