// SPDX-License-Identifier: MIT
// Arithmetic and mallocs that threads share equally, nothing else shared: it scales, unless a quota of the control group
// holds it back. A run of 2 ms and 200 blocks is too short to say anything: only to blame somebody is wrong.
#include "tests/doctor/corpus/programs/common.h"

static long steps_of_each, blocks_of_each;

static void* work(void* unused) {
  uint64_t value = 88172645463325252u + (uintptr_t)unused;
  for (long i = 0; i < blocks_of_each; ++i) {
    char* block = malloc(16 + value % 400);
    block[0] = 1;
    value = value * 1664525u + (uintptr_t)block;
    free(block);
  }
  return (void*)(uintptr_t)mix(value, steps_of_each);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  steps_of_each = atol(argv[2]) * 1000000 / threads;
  blocks_of_each = atol(argv[3]) / threads;
  printf("%p\n", in_threads(threads, work));
}
