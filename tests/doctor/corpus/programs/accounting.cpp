// SPDX-License-Identifier: MIT
// Every allocation and free of a server is counted by its kind, under a spin lock of that kind.
// People found by measuring that spin locks for the accounting of memory are among the worst.
#include <pthread.h>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
struct Kind {
  pthread_spinlock_t lock;
  long blocks = 0, bytes = 0, most = 0;
};
Kind g_kind;

void count(long blocks, long bytes) {
  pthread_spin_lock(&g_kind.lock);
  g_kind.blocks += blocks;
  g_kind.bytes += bytes;
  if (g_kind.bytes > g_kind.most) g_kind.most = g_kind.bytes;
  pthread_spin_unlock(&g_kind.lock);
}
}  // namespace

int main(int argc, char** argv) {
  pthread_spin_init(&g_kind.lock, PTHREAD_PROCESS_PRIVATE);
  rebuilt::in_threads(argc, argv, [](unsigned, long requests) {
    for (long i = 0; i < requests; ++i) {
      count(1, 200);
      const rebuilt::Block request = rebuilt::block(200);
      rebuilt::keep(request);
      count(-1, -200);
    }
  });
}
