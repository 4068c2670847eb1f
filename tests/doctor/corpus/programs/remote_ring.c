// SPDX-License-Identifier: MIT
// Pairs of threads: one allocates messages and puts them into a ring, the other frees them; with one thread it does both in
// turn. Each free goes to the arena of the thread that allocates at the same time. The ring's indices are published once in
// 512 messages. Large messages make glibc also give the top of the arena back and fault it in again: both are right.
#include <sched.h>
#include <stdatomic.h>

#include "tests/doctor/corpus/programs/common.h"

enum { kSlots = 4096, kStep = 512 };

struct ring {
  _Alignas(128) void* slots[kSlots];
  _Alignas(128) atomic_ulong written;
  _Alignas(128) atomic_ulong read;
};

static struct ring rings[32];
static size_t bytes;
static unsigned long messages;  // of each ring
static int is_alone;

static void produce_step(struct ring* ring, unsigned long at) {
  while (at + kStep - atomic_load(&ring->read) > kSlots) sched_yield();
  for (unsigned long i = at; i < at + kStep; ++i) {
    char* block = malloc(bytes);
    block[0] = (char)i;
    ring->slots[i % kSlots] = block;
  }
  atomic_store(&ring->written, at + kStep);
}

static void consume_step(struct ring* ring, unsigned long at) {
  while (atomic_load(&ring->written) < at + kStep) sched_yield();
  for (unsigned long i = at; i < at + kStep; ++i) free(ring->slots[i % kSlots]);
  atomic_store(&ring->read, at + kStep);
}

static void* work(void* index) {
  struct ring* const ring = &rings[(long)index / 2];
  const int consumes = (long)index % 2;
  for (unsigned long at = 0; at < messages; at += kStep) {
    if (!consumes) produce_step(ring, at);
    if (consumes || is_alone) consume_step(ring, at);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[1]);
  bytes = strtoul(argv[2], NULL, 10);
  const int pairs = threads > 1 ? threads / 2 : 1;
  messages = strtoul(argv[3], NULL, 10) / pairs;
  is_alone = threads == 1;
  in_threads(threads, work);
  printf("%lu messages of %zu bytes through each of %d rings\n", messages, bytes, pairs);
}
