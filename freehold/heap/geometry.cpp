// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <bit>

#include "freehold/heap/slab.hpp"
#include "freehold/os/cpu.hpp"

namespace freehold::heap {

unsigned heap_shards() noexcept {
  static constexpr unsigned kShardsACpu = 4, kLeast = 16, kMost = 64;
  // A static that is initialised once would need libstdc++'s guard. relaxed: every thread finds the same number.
  static constinit std::atomic<unsigned> found{0};
  if (const unsigned shards = found.load(std::memory_order_relaxed); shards != 0) [[likely]]
    return shards;
  const unsigned shards = std::clamp(std::bit_ceil(kShardsACpu * os::possible_cpus()), kLeast, kMost);
  found.store(shards, std::memory_order_relaxed);
  return shards;
}

}  // namespace freehold::heap
