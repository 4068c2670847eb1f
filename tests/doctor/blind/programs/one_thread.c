// SPDX-License-Identifier: MIT
// Does: a program with one thread only.
//       faults  buffers of 48 MiB from malloc, written and freed: the time goes into page faults of memory that glibc gives
//       back each time blocks  small blocks from malloc
// Why:  by construction one thread: more CPUs cannot help, whichever malloc. Another malloc makes the first one several
// times as fast, but
//       it explains none of the scaling, so a verdict that says so in these words is wrong.
// Case one_thread_faults: faults 45
//   Truth: serial
//   Right: serial page-faults mixed+
//   Unsaid: of the scaling that
//   Seen: 95% in the kernel; tcmalloc 7 times as fast as glibc, jemalloc and mimalloc as fast; 2 CPUs as fast as 1
// Case one_thread_blocks: blocks 40000000
//   Truth: serial
//   Right: serial
#include "tests/doctor/blind/programs/common.h"

enum { kLive = 4000 };

static void faults(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    char* buffer = malloc(48 << 20);
    memset(buffer, (int)i, 48 << 20);
    __asm__ volatile("" ::"r"(buffer) : "memory");
    free(buffer);
  }
}

static void blocks(long rounds) {
  static char* live[kLive];
  unsigned seed = 5;
  for (long i = 0; i < rounds; ++i) {
    seed = seed * 1664525u + 1013904223u;
    char** slot = &live[(seed >> 8) % kLive];
    free(*slot);
    *slot = malloc(16 + (seed >> 23));
    memset(*slot, 1, 16);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  strcmp(argv[1], "faults") ? blocks(atol(argv[2])) : faults(atol(argv[2]));
  printf("%s rounds of %s\n", argv[2], argv[1]);
}
