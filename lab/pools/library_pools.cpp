// SPDX-License-Identifier: MIT
#include "lab/pools/library_pools.hpp"

#include <algorithm>

namespace freehold::lab::pools {

// A few at a time, first ones first, as an allocator's refill does.
void* ThreadFreeList::cut() noexcept {
  // relaxed: pieces are only told apart.
  const std::size_t first = used_.fetch_add(kCutAtOnce, std::memory_order_relaxed);
  const std::size_t end = std::min(first + kCutAtOnce, capacity());
  if (first >= end) return nullptr;
  auto* const start = static_cast<std::byte*>(memory_.start());
  for (std::size_t i = end - 1; i > first; --i) release(start + i * slot_bytes_);
  return start + first * slot_bytes_;
}

}  // namespace freehold::lab::pools
