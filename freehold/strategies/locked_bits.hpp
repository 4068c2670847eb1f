// SPDX-License-Identifier: MIT
// One bit for each slot behind a lock, and a cursor that goes round over the words: the pool S4 of "Memory management, pools
// compared", whose words have 32 bits; and the same in words of 64.
//
//   Invariant, under the lock: a bit is set  <=>  its slot is free; free_ is their number. The cursor is a hint.
//
// Linearisation: within the lock. Any thread; blocks. Cost: the lock, the word's line, and a look at every word without a
// free slot before the next that has one. Bookkeeping: 1 bit a slot and a constant.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/strategies/pool_lock.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

template <sync::Atomics A, class Lock, std::unsigned_integral Word>
class LockedBitSet {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockedBitSet(std::size_t slots) : words_(base::ceil_div(slots, kBits)), free_(slots) {
    for (std::size_t slot = 0; slot < slots; ++slot) mark_free(slot);
  }

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    if (free_.load() == 0) return kNone;
    free_.store(free_.load() - 1);
    std::size_t w = cursor_.load();
    while (words_[w].load() == 0) w = w + 1 == words_.size() ? 0 : w + 1;
    const Word bits = words_[w].load();
    words_[w].store(bits & (bits - 1));
    cursor_.store(w);
    return w * kBits + base::lowest_bit(bits);
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    mark_free(slot);
    free_.store(free_.load() + 1);
  }

 private:
  static constexpr std::size_t kBits = std::numeric_limits<Word>::digits;

  void mark_free(std::size_t slot) noexcept {
    auto& word = words_[slot / kBits];
    word.store(word.load() | Word{1} << slot % kBits);
  }

  // Under the lock.
  ZeroedArray<typename A::template var<Word>> words_;
  alignas(base::kCacheLine) Lock lock_;
  typename A::template var<std::size_t> cursor_{0};  // a word
  typename A::template var<std::size_t> free_;
};

template <class Word>
struct BitsOf {
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 1.0 / 8;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = SlotSetPool<LockedBitSet<A, PoolLock<A, O>, Word>, Contention>;
};
/// A bit for each slot, in words of 64, and a cursor that goes round, behind a lock.
struct LockedBits : BitsOf<std::uint64_t> {
  static constexpr std::string_view kName = "locked-bits";
};
/// The same in words of 32: S4 of article 2.
struct LockedBits32 : BitsOf<std::uint32_t> {
  static constexpr std::string_view kName = "locked-bits-32";
};

}  // namespace freehold::pool
