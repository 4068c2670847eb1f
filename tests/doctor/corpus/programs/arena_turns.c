// SPDX-License-Identifier: MIT
// Twelve threads, one after the other, build and drop 40 MB of small blocks, and keep the last few; then all compute side
// by side. Each peak lies in another arena, and the blocks that are kept at its top hold it there: 350 MiB for a peak
// of 40. Only memory is lost: building takes a few per cent of the time.
#include "tests/doctor/corpus/programs/common.h"

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
