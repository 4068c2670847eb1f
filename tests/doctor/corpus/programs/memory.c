// SPDX-License-Identifier: MIT
// Threads read and write arrays far beyond every cache, each its own part, which it fills at the start.
//   stream  three arrays of 192 MiB, one after the other: limited by what memory can deliver
//   chase   a random walk through 128 MiB: limited by latency, which each CPU waits for alone
// The machine decides whether two CPUs can have more than one, so "it scales" is right where its own trials did.
#include "tests/doctor/corpus/programs/common.h"

enum { kStream = 24 << 20, kChase = 32 << 20 };
static double *a, *b, *c;
static uint32_t* next_of;
static int threads, streams;
static long rounds;
static pthread_barrier_t filled;

static void fill(long from, long to) {
  for (long i = from; i < to; ++i)
    if (streams)
      a[i] = b[i] = c[i] = 1.0;
    else
      next_of[i] = ((uint32_t)i * 1664525u + 1013904223u) % kChase;
}

static void* work(void* index) {
  const long me = (long)index;
  const long from = (streams ? kStream : kChase) / threads * me, to = (streams ? kStream : kChase) / threads * (me + 1);
  fill(from, to);
  pthread_barrier_wait(&filled);
  if (!streams) {
    uint32_t at = (uint32_t)me * 77777;
    for (long i = 0; i < rounds / threads; ++i) at = next_of[at];
    return (void*)(uintptr_t)at;
  }
  for (long round = 0; round < rounds; ++round)
    for (long i = from; i < to; ++i) a[i] = b[i] + 3.0 * c[i];
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  threads = atoi(argv[1]);
  streams = !strcmp(argv[2], "stream");
  rounds = atol(argv[3]);
  if (streams) {
    double** arrays[] = {&a, &b, &c};
    for (int k = 0; k < 3; ++k) *arrays[k] = malloc(kStream * sizeof(double));
  } else {
    next_of = malloc(kChase * sizeof *next_of);
  }
  pthread_barrier_init(&filled, NULL, (unsigned)threads);
  printf("%p\n", in_threads(threads, work));
}
