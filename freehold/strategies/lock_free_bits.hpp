// SPDX-License-Identifier: MIT
// One bit for each slot in lock-free words of 64: the successor of the pool S4 of "Memory management, pools compared",
// without its lock, and with a cursor for each few threads, so that they work in different words.
//
//   Invariant: a bit is set  <=>  its slot is free and no thread holds it (free_words.hpp).
//
// Linearisation: acquire at its compare-exchange (null: where shortage.hpp says), release at its addition. Any thread;
// lock-free. Cost: one atomic each on the word's line, and one load for every word without a free slot before the next that
// has one. Bookkeeping: 1 bit a slot and a constant.
#pragma once
#include <cstddef>

#include "freehold/strategies/cursors.hpp"
#include "freehold/strategies/free_words.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

struct LockFreeBitsOrders {
  FreeWordsOrders words;
  ShortageOrders shortage;
};

template <sync::Atomics A, LockFreeBitsOrders O>
class LockFreeBitSet {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockFreeBitSet(std::size_t slots) : words_(slots), cursors_(words_.words()) {}

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const std::size_t here = cursors_.here();
    std::size_t slot = words_.take_from(here, contention);
    if (slot == kNone) [[unlikely]]
      slot = shortage_.search(kNone, [&] { return words_.take_from(here, contention); });
    if (slot != kNone && slot >> 6 != here) cursors_.move(slot >> 6);
    return slot;
  }
  void put(std::size_t slot, auto&) noexcept {
    words_.put(slot);
    shortage_.released();
  }

 private:
  FreeWords<A, O.words> words_;
  Cursors<A> cursors_;
  Shortage<A, O.shortage> shortage_;
};

/// A bit for each slot, without a lock; threads work in different words.
struct LockFreeBits {
  static constexpr std::string_view kName = "lock-free-bits";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 1.0 / 8;
  static constexpr LockFreeBitsOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, LockFreeBitsOrders O = kOrders>
  using Pool = SlotSetPool<LockFreeBitSet<A, O>, Contention>;
};

}  // namespace freehold::pool
