// SPDX-License-Identifier: MIT
// Does: two jobs on a queue: a long one that churns through large buffers from malloc, and a shorter one that computes.
//       slow     one job is in malloc for long, the other one ends early and waits: too few jobs,
//                and the long one is malloc's
//       even     the one job allocates small blocks, the other never does; about as long as each other: that scales
// Why:  the jobs share nothing. In `slow` both are true: with two CPUs one is idle for lack of jobs, and another malloc
// shortens the long job.
// Case one_slow_in_malloc: {n} slow 45
//   Truth: serial
//   Right: serial page-faults mixed+ mixed-
// Case one_not_in_malloc: {n} even 50
//   Truth: none
//   Right: none
#include <atomic>

#include "tests/doctor/blind/programs/common.h"

namespace {

void churn(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    auto* buffer = static_cast<char*>(std::malloc(40 << 20));
    std::memset(buffer, 1, 40 << 20);
    asm volatile("" ::"r"(buffer) : "memory");
    std::free(buffer);
  }
}

void small_blocks(long rounds) {
  std::vector<char*> live(1000);
  unsigned seed = 3;
  for (long i = 0; i < rounds; ++i) {
    seed = seed * 1664525u + 1013904223u;
    char*& slot = live[(seed >> 8) % live.size()];
    std::free(slot);
    slot = static_cast<char*>(std::malloc(16 + (seed >> 24)));
  }
  for (char* block : live) std::free(block);
}

std::uint64_t compute(long steps) { return mix(88172645463325252u, steps); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const bool slow = !std::strcmp(argv[2], "slow");
  const long size = std::atol(argv[3]);
  std::atomic<int> next{0};
  std::atomic<std::uint64_t> sum{0};
  in_threads(threads, [&](int) {
    for (int job; (job = next++) < 2;)
      if (job == 1)
        sum += compute(size * (slow ? 1'500'000 : 5'000'000));
      else
        slow ? churn(size) : small_blocks(size * 500'000);
  });
  std::printf("%llx\n", static_cast<unsigned long long>(sum.load()));
}
