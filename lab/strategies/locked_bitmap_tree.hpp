// SPDX-License-Identifier: MIT
// A hierarchy of bitmaps behind a lock: level 0 has one bit for each slot, a level above one bit for each word of the level
// below that is not zero, the top is one word. Finding a free slot is one bit scan a level, whatever the pool's state: the
// constant-time pool S5 of "Memory management, pools compared", for any capacity.
//
//   Invariant, under the lock: a bit of level 0 is set  <=>  its slot is free; a bit of a level above is set  <=>  its word
//   below is not zero.
//
// Linearisation: within the lock. Any thread; blocks. Cost: the lock and one word a level (two levels to 4096 slots, three
// to 262144). Bookkeeping: 1 bit a slot, a 63rd of that for the levels above, and a constant.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "lab/strategies/pool_lock.hpp"
#include "lab/strategies/slot_set_pool.hpp"

namespace freehold::pool {

template <sync::Atomics A, PoolLockOrders O>
class LockedBitTree {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockedBitTree(std::size_t slots) : words_(words_for(slots)) {
    std::size_t first = 0, places = slots;
    do {
      places = base::ceil_div(places, 64);
      level_[levels_++] = first;
      first += places;
    } while (places > 1);
    for (std::size_t slot = 0; slot < slots; ++slot) mark_free(slot);
  }

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const Guard<Contention> guard(lock_, contention);
    std::size_t place = 0;
    for (unsigned level = levels_; level-- > 0;) {
      const std::uint64_t bits = at(level, place).load();
      if (bits == 0) return kNone;  // in the top word only
      place = place * 64 + base::lowest_bit(bits);
    }
    const std::size_t slot = place;
    for (unsigned level = 0; level < levels_; ++level, place >>= 6) {
      Word& word = at(level, place >> 6);
      word.store(word.load() & ~base::bit(place & 63));
      if (word.load() != 0) break;
    }
    return slot;
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const Guard<Contention> guard(lock_, contention);
    mark_free(slot);
  }

 private:
  template <class Contention>
  using Guard = typename PoolLock<A, O>::template Guard<Contention>;
  using Word = typename A::template var<std::uint64_t>;
  static constexpr unsigned kMaxLevels = 11;  // 64 to that power exceeds an address

  static std::size_t words_for(std::size_t places) noexcept {
    std::size_t total = 0;
    do {
      places = base::ceil_div(places, 64);
      total += places;
    } while (places > 1);
    return total;
  }
  [[nodiscard]] Word& at(unsigned level, std::size_t word) const noexcept { return words_[level_[level] + word]; }

  void mark_free(std::size_t place) noexcept {
    for (unsigned level = 0; level < levels_; ++level, place >>= 6) {
      Word& word = at(level, place >> 6);
      const std::uint64_t before = word.load();
      word.store(before | base::bit(place & 63));
      if (before != 0) break;
    }
  }

  // Nobody writes after construction.
  std::array<std::size_t, kMaxLevels> level_{};  // its first word
  unsigned levels_ = 0;
  // Under the lock.
  ZeroedArray<Word> words_;
  alignas(base::kCacheLine) PoolLock<A, O> lock_;
};

struct LockedBitmapTree {
  static constexpr std::string_view kName = "locked-bitmap-tree";
  static constexpr std::string_view kSource = "article 2, S5";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 64.0 / 63 / 8;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = SlotSetPool<LockedBitTree<A, O>, Contention>;
};

}  // namespace freehold::pool
