// SPDX-License-Identifier: MIT
// Does: pairs of threads: one allocates messages and puts them into a ring, the other one reads and frees them. With one
//       thread it does both in turn.
// Why:  each free goes to the arena of the thread that allocates at the same time, so the two contend for its lock and
// lines.
//       The ring's own indices are published once in 512 messages, so that they are not what is waited for.
//       Large messages, when freed, make glibc also give the top of the arena back and fault it in again: any of both is
//       right.
// Case remote_ring_small: {n} 100 14000000
//   Truth: remote-frees
//   Right: remote-frees allocator-lock
//   Seen: strace -f -c of a fourteenth of it: 2 futex calls, 490 sched_yield by the ring (one CPU was free)
// Case remote_ring_large: {n} 1500 3000000
//   Truth: remote-frees
//   Right: remote-frees allocator-lock page-faults mixed+
//   Seen: 2 threads 0.7 times as fast as 1, 80% in the kernel; jemalloc 6.6, mimalloc 10, tcmalloc 9 times as fast as
//       glibc (busy machine)
#include <sched.h>
#include <stdatomic.h>

#include "tests/doctor/blind/programs/common.h"

enum { kSlots = 4096, kStep = 512 };

struct ring {
  _Alignas(128) void* slots[kSlots];
  _Alignas(128) atomic_ulong written;
  _Alignas(128) atomic_ulong read;
};

static struct ring rings[32];
static size_t bytes;
static unsigned long messages;  // messages of each ring
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
