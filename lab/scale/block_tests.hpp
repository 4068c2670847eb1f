// SPDX-License-Identifier: MIT
// The thread-local article's two tests, over any source of blocks: workers in isolation, and producer and consumer.
// A Blocks type has static allocate(bytes) and deallocate(block), callable from any thread.
// Every block carries a stamp that is checked before the block is freed; this finds a block that was allocated twice.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "lab/experiment/batch_ring.hpp"
#include "lab/scale/job.hpp"
#include "lab/scale/workloads.hpp"
#include "tools/support/worker_group.hpp"

namespace freehold::lab::scale {

struct Stamp {
  std::uint64_t value;
};

// Sizes 16 to 128 bytes, small ones more often: the range of the article's chains.
inline constexpr std::array<std::uint16_t, 16> kBlockBytes{16, 24, 16, 32, 48, 16, 64, 32, 24, 128, 16, 48, 32, 96, 16, 64};

template <class Blocks>
Stamp* make_block(std::uint64_t value) {
  void* const block = Blocks::allocate(kBlockBytes[value % kBlockBytes.size()]);
  if (block == nullptr) throw std::bad_alloc();
  return ::new (block) Stamp{value};
}

template <class Blocks>
bool free_block(Stamp* block, std::uint64_t value) {
  const bool correct = block->value == value;
  Blocks::deallocate(block);
  return correct;
}

// Test 1: every worker allocates a thousand blocks and frees them in the same order; none leaves its thread.
template <class Blocks>
bool isolation(const Job& job, GroupWorker& worker) {
  const std::uint64_t units = share_of(job.iterations, job.workers, worker.index()) * job.units;
  std::vector<Stamp*> blocks(kIsolationBlocks);
  std::uint64_t stamp = std::uint64_t{worker.index()} << 40;
  bool correct = true;
  worker.start();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    for (std::uint64_t i = 0; i < kIsolationBlocks; ++i) blocks[i] = make_block<Blocks>(stamp + i);
    for (std::uint64_t i = 0; i < kIsolationBlocks; ++i) correct &= free_block<Blocks>(blocks[i], stamp + i);
    stamp += kIsolationBlocks;
  }
  worker.finish();
  return correct;
}

using BlockRing = BatchRing<Stamp*, kHandoverBatch>;

// Test 2: workers 2k and 2k + 1 are a pair; the first allocates blocks, the second frees them.
// Pre: threads, an even number of workers, and a ring for each pair.
template <class Blocks>
bool handover(const Job& job, GroupWorker& worker, std::vector<std::unique_ptr<BlockRing>>& rings) {
  const std::uint32_t pair = worker.index() / 2;
  const std::uint64_t units = share_of(job.iterations, job.workers / 2, pair) * job.units;
  const std::uint64_t batches = units * (kHandoverBlocks / kHandoverBatch);
  BlockRing& ring = *rings[pair];
  bool correct = true;
  std::uint64_t stamp = std::uint64_t{pair} << 40;
  worker.start();
  for (std::uint64_t i = 0; i < batches; ++i) {
    if (worker.index() % 2 == 0) {
      for (Stamp*& block : ring.next_to_fill()) block = make_block<Blocks>(stamp++);
      ring.filled();
    } else {
      for (Stamp* block : ring.next_to_empty()) correct &= free_block<Blocks>(block, stamp++);
      ring.emptied();
    }
  }
  worker.finish();
  return correct;
}

}  // namespace freehold::lab::scale
