// SPDX-License-Identifier: MIT
// One bit for each slot in lock-free words of 64: the successor of the pool S4 of "Memory management, pools compared",
// without its lock, and with a cursor for each few threads, so that they work in different words.
//
//   Invariant: a bit is set  <=>  its slot is free and in nobody's hands (free_words.hpp).
//
// Linearisation: acquire at its compare-exchange (null: where shortage.hpp says), release at its addition. Any thread;
// lock-free. Cost: one atomic each on the word's line, and one load for every word without a free slot before the next that
// has one. Bookkeeping: 1 bit a slot and a constant.
#pragma once
#include <array>
#include <cstddef>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/slots.hpp"
#include "lab/strategies/cursors.hpp"
#include "lab/strategies/free_words.hpp"
#include "lab/strategies/shortage.hpp"

namespace freehold::pool {

struct LockFreeBitsOrders {
  FreeWordsOrders words;
  ShortageOrders shortage;
};

template <sync::Atomics A, class Contention, LockFreeBitsOrders O>
class LockFreeBitsPool {
 public:
  explicit LockFreeBitsPool(const PoolShape& shape) : slots_(shape), words_(shape.slots), cursors_(words_.words()) {}

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    const std::size_t here = cursors_.here();
    std::size_t slot = words_.take_from(here, contention_);
    if (slot == Slots::kNone) [[unlikely]]
      slot = shortage_.search(Slots::kNone, [&] { return words_.take_from(here, contention_); });
    if (slot == Slots::kNone) return nullptr;
    if (slot >> 6 != here) cursors_.move(slot >> 6);
    return slots_.hand_out(slot);
  }

  void release(void* slot) noexcept {
    const std::size_t number = slots_.take_back(slot);
    if (number == Slots::kNone) return;
    contention_.operated();
    words_.put(number);
    shortage_.released();
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  // Nobody writes after construction.
  Slots slots_;
  // Any thread.
  FreeWords<A, O.words> words_;
  Cursors<A> cursors_;
  Shortage<A, O.shortage> shortage_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct LockFreeBits {
  static constexpr std::string_view kName = "lock-free-bits";
  static constexpr std::string_view kSource = "article 2, S4, without its lock";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 1.0 / 8;
  static constexpr LockFreeBitsOrders kOrders{};
  static constexpr std::array kUnobservable{Unobservable{0, kSeenInShortageModel}, Unobservable{1, kSeenInShortageModel},
                                            Unobservable{2, kSeenInShortageModel}, Unobservable{3, kSeenInShortageModel},
                                            Unobservable{4, kSeenInShortageModel}};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, LockFreeBitsOrders O = kOrders>
  using Pool = LockFreeBitsPool<A, Contention, O>;
};

}  // namespace freehold::pool
