// SPDX-License-Identifier: MIT
// Does: threads allocate large buffers of their own, write a byte to each page, and free them.
// Why:  threads share nothing but malloc and the address space. How glibc treats the buffer decides:
//       mmap    mallopt fixes the threshold below the size: each malloc is an mmap, each free an munmap, each page is
//       faulted in anew calloc  the same through calloc trim    buffers lie in the arena, which mallopt makes give its top
//       back at once huge    beyond 32 MiB glibc uses mmap always, nothing is set kept    4 MiB, nothing is set: the
//       threshold grows at the first free, and then memory is kept. That scales. Taking and returning the pages goes through
//       the one lock of the address space, and the kernel zeroes them.
// Case churn_mmap: {n} mmap 512 10000
//   Truth: page-faults
//   Right: page-faults
//   Seen: 85% of the CPU time in the kernel; at 2 threads jemalloc 174, mimalloc 79, tcmalloc 70 times as fast as glibc
//       (busy machine)
// Case churn_calloc: {n} calloc 1024 6000
//   Truth: page-faults
//   Right: page-faults
//   Seen: 87% in the kernel; jemalloc 1.4, mimalloc 20, tcmalloc 20 times as fast as glibc (busy machine)
// Case churn_trim: {n} trim 100 50000
//   Truth: page-faults
//   Right: page-faults allocator-lock
//   Seen: 92% in the kernel; jemalloc 150, mimalloc 354, tcmalloc 264 times as fast as glibc (busy machine)
// Case churn_huge: {n} huge 40960 150
//   Truth: page-faults
//   Right: page-faults none(lost<0.25)
//   Seen: 93% in the kernel; tcmalloc 21 times as fast, jemalloc 0.8 and mimalloc 0.5, which return it as well; 2 threads
//       1.9 times as fast as 1
// Case kept_4mib: {n} kept 4096 200000
//   Truth: none
//   Right: none
//   Seen: strace -f -c: no madvise, mmap or munmap besides start-up: the memory is kept
#include <malloc.h>

#include "tests/doctor/blind/programs/common.h"

static const char* mode;
static size_t bytes;
static long rounds;

static void* work(void* unused) {
  const int zeroed = !strcmp(mode, "calloc");
  for (long i = 0; i < rounds; ++i) {
    volatile char* buffer = zeroed ? calloc(bytes, 1) : malloc(bytes);
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
  if (!strcmp(mode, "mmap") || !strcmp(mode, "calloc")) mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  if (!strcmp(mode, "trim")) {
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
  }
  in_threads(threads, work);
  printf("%s: %ld buffers of %zu bytes by each of %d threads\n", mode, rounds, bytes, threads);
}
