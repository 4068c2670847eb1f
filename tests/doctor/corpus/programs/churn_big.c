// SPDX-License-Identifier: MIT
// Threads allocate large buffers of their own, write a byte to each page, and free them. How glibc treats them decides:
//   mmap  mallopt fixes the threshold below the size: each malloc is an mmap, each free an munmap
//   trim  buffers lie in the arena, which mallopt makes give its top back at once
//   huge  beyond 32 MiB glibc always uses mmap
//   kept  4 MiB, and nothing is set: the threshold grows at the first free, and then memory is kept. That scales.
// Taking and returning pages goes through the lock of the address space, and the kernel zeroes them. At 2 threads tcmalloc
// is 70 (mmap), 264 (trim) and 21 (huge) times as fast as glibc.
#include <malloc.h>

#include "tests/doctor/corpus/programs/common.h"

static const char* mode;
static size_t bytes;
static long rounds;

static void* work(void* unused) {
  for (long i = 0; i < rounds; ++i) {
    volatile char* buffer = malloc(bytes);
    for (size_t at = 0; at < bytes; at += 4096) buffer[at] = 1;
    free((void*)buffer);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int threads = atoi(argv[1]);
  mode = argv[2];
  bytes = strtoul(argv[3], NULL, 10) * 1024;
  rounds = atol(argv[4]) / threads;
  if (!strcmp(mode, "mmap")) mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  if (!strcmp(mode, "trim")) {
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
  }
  in_threads(threads, work);
  printf("%s: %ld buffers of %zu bytes by each of %d threads\n", mode, rounds, bytes, threads);
}
