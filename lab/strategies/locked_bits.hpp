// SPDX-License-Identifier: MIT
// One bit for each slot, in words of 64 behind a lock, and a cursor that goes round over the words: the pool S4 of "Memory
// management, pools compared".
//
//   Invariant, under the lock: a bit is set  <=>  its slot is free; free_ is their number. The cursor is a hint.
//
// Linearisation: within the lock. Any thread; blocks. Cost: the lock, the word's line, and a look at every word without a
// free slot before the next that has one. Bookkeeping: 1 bit a slot and a constant.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "lab/strategies/pool_lock.hpp"
#include "lab/strategies/slot_set_pool.hpp"

namespace freehold::pool {

template <sync::Atomics A, PoolLockOrders O>
class LockedBitSet {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockedBitSet(std::size_t slots) : words_(base::ceil_div(slots, 64)), free_(slots) {
    for (std::size_t slot = 0; slot < slots; ++slot) mark_free(slot);
  }

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const Guard<Contention> guard(lock_, contention);
    if (free_.load() == 0) return kNone;
    free_.store(free_.load() - 1);
    std::size_t w = cursor_.load();
    while (words_[w].load() == 0) w = w + 1 == words_.size() ? 0 : w + 1;
    const std::uint64_t bits = words_[w].load();
    words_[w].store(bits & (bits - 1));
    cursor_.store(w);
    return w * 64 + base::lowest_bit(bits);
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const Guard<Contention> guard(lock_, contention);
    mark_free(slot);
    free_.store(free_.load() + 1);
  }

 private:
  template <class Contention>
  using Guard = typename PoolLock<A, O>::template Guard<Contention>;

  void mark_free(std::size_t slot) noexcept { words_[slot >> 6].store(words_[slot >> 6].load() | base::bit(slot & 63)); }

  // Under the lock.
  ZeroedArray<typename A::template var<std::uint64_t>> words_;
  alignas(base::kCacheLine) PoolLock<A, O> lock_;
  typename A::template var<std::size_t> cursor_{0};  // a word
  typename A::template var<std::size_t> free_;
};

struct LockedBits {
  static constexpr std::string_view kName = "locked-bits";
  static constexpr std::string_view kSource = "article 2, S4";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 1.0 / 8;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = SlotSetPool<LockedBitSet<A, O>, Contention>;
};

}  // namespace freehold::pool
