// SPDX-License-Identifier: MIT
// Each thread fills a batch of blocks, swaps it for the batch that another thread left in a shared slot, and frees that one:
// every second block, or more, is freed by the thread that did not allocate it. One atomic exchange is for 512 blocks.
#include <atomic>

#include "tests/doctor/corpus/programs/common.h"

namespace {

constexpr int kBatch = 512;
struct alignas(128) Slot {
  std::atomic<std::vector<char*>*> batch{nullptr};
};
Slot slots[8];

void exchange(long blocks, std::size_t bytes, unsigned seed) {
  auto* mine = new std::vector<char*>(kBatch, nullptr);
  for (long done = 0; done < blocks; done += kBatch) {
    for (char*& block : *mine) {
      seed = seed * 1664525u + 1013904223u;
      block = static_cast<char*>(std::malloc(bytes ? bytes : 16 + (seed >> 20)));
      block[0] = 1;
    }
    // acq_rel: the batch's blocks are published to the thread that takes them, in both directions.
    auto* other = slots[(seed >> 10) % 8].batch.exchange(mine, std::memory_order_acq_rel);
    mine = other ? other : new std::vector<char*>(kBatch, nullptr);
    for (char* block : *mine) std::free(block);
  }
  delete mine;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long blocks = std::atol(argv[3]) / threads;
  in_threads(threads, [&](int i) { exchange(blocks, std::strtoul(argv[2], nullptr, 10), i + 1); });
  std::printf("%ld blocks by each of %d threads\n", blocks, threads);
}
