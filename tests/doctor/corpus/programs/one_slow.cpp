// SPDX-License-Identifier: MIT
// Two jobs on a queue: one that is in malloc, and one that computes. `slow`: the first takes long, and the other thread
// waits: too few jobs, and the long one is malloc's; both are true. `even`: both take about as long: that scales.
#include <atomic>

#include "tests/doctor/corpus/programs/common.h"

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
