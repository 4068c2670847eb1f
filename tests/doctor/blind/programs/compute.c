// SPDX-License-Identifier: MIT
// Does: arithmetic that threads share equally, without memory and without locks; and too short a program.
// Why:  by construction nothing is shared. It scales, unless a quota of the control group holds it back
//       (1.2 CPUs for two threads).
//       2 ms and 200 blocks are too little to say anything: only to blame somebody is wrong.
// Case compute: {n} 600 0
//   Truth: none
//   Right: none
// Case compute_by_cpus: 4 600 0
//   Truth: none
//   Right: none
// Case compute_under_quota: {n} 600 0
//   Truth: cpu-quota
//   Right: cpu-quota
//   Quota: 1.2
// Case mallocs_under_quota: {n} 400 4000000
//   Truth: cpu-quota
//   Right: cpu-quota
//   Quota: 1
// Case compute_and_mallocs: {n} 500 10000000
//   Truth: none
//   Right: none
// Case too_short: {n} 1 0
//   Truth: too-short
//   Right: undecided none serial
// Case too_short_with_mallocs: {n} 1 200
//   Truth: too-short
//   Right: undecided none serial
#include "tests/doctor/blind/programs/common.h"

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
