// SPDX-License-Identifier: MIT
// One thread: more CPUs cannot help, whichever malloc. `faults`: buffers of 48 MiB, written and freed, whose pages glibc
// gives back each time; tcmalloc is 7 times as fast, which explains none of the scaling. `blocks`: small blocks.
#include "tests/doctor/corpus/programs/common.h"

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
