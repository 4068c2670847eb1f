// SPDX-License-Identifier: MIT
// One bit for each slot, set while it is free, in words of 64: what the lock-free bitmap pools and their relatives share.
//
//   Invariant: a bit is set  <=>  the slot is free and no thread holds it; the bits beyond the last slot are clear.
//
// Linearisation: take and take_some at their compare-exchange, put at its addition. Any thread; lock-free.
// Cost: one atomic each on a line of 512 slots' bits. Bookkeeping: one bit a slot.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/tagged_stack.hpp"

namespace freehold::pool {

struct FreeWordsOrders {
  // seq_cst: a sweep that finds nothing relies on having seen what was put before it began (shortage.hpp).
  std::memory_order look = std::memory_order_seq_cst;
  // acquire: pairs with put; the slot's former owner is done with it. release: a sweep that sees the bit gone also sees what
  // its taker wrote before.
  std::memory_order take = std::memory_order_acq_rel;
  // seq_cst: release, pairs with take; and before the look at searching threads, or whether a summary's bit is set.
  std::memory_order put = std::memory_order_seq_cst;
};

template <sync::Atomics A, FreeWordsOrders O = FreeWordsOrders{}>
class FreeWords {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  // Errors: std::bad_alloc.
  explicit FreeWords(std::size_t slots) : words_(base::ceil_div(slots, 64)) {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::size_t left = slots - w * 64;
      words_[w].store(base::low_bits(left < 64 ? static_cast<unsigned>(left) : 64),
                      std::memory_order_relaxed);  // not shared
    }
  }

  [[nodiscard]] std::size_t words() const noexcept { return words_.size(); }
  [[nodiscard]] bool any(std::size_t word) const noexcept { return words_[word].load(O.look) != 0; }

  // Takes the lowest free slot of a word; kNone: no slot is free.
  template <class Contention>
  [[nodiscard]] std::size_t take(std::size_t word, Contention& contention) noexcept {
    std::uint64_t seen = words_[word].load(O.look);
    while (seen != 0) {
      if (words_[word].compare_exchange_weak(seen, seen & (seen - 1), kTook, O.look))
        return word * 64 + base::lowest_bit(seen);
      contention.retried();
    }
    return kNone;
  }

  // Takes the lowest free slot of the words first, first + 1, ..., and from 0 on; kNone: each was seen empty, though perhaps
  // not at the same time.
  template <class Contention>
  [[nodiscard]] std::size_t take_from(std::size_t first, Contention& contention) noexcept {
    for (std::size_t i = 0, word = first; i < words_.size(); ++i, word = word + 1 == words_.size() ? 0 : word + 1)
      if (const std::size_t slot = take(word, contention); slot != kNone) return slot;
    return kNone;
  }

  // Takes the `want` lowest free slots of a word, or as many as there are. Returns their bits.
  template <class Contention>
  [[nodiscard]] std::uint64_t take_some(std::size_t word, unsigned want, Contention& contention) noexcept {
    std::uint64_t seen = words_[word].load(O.look);
    while (seen != 0) {
      std::uint64_t rest = seen;
      for (unsigned i = 0; i < want && rest != 0; ++i) rest &= rest - 1;
      if (words_[word].compare_exchange_weak(seen, rest, kTook, O.look)) return seen & ~rest;
      contention.retried();
    }
    return 0;
  }

  // Gives a slot back. Returns whether the word held none before.
  bool put(std::size_t slot) noexcept { return put_all(slot >> 6, base::bit(slot & 63)); }
  bool put_all(std::size_t word, std::uint64_t bits) noexcept {
    // The bits are clear, so adding sets them: fetch_add is one instruction where fetch_or with a result is a loop.
    return words_[word].fetch_add(bits, O.put) == 0;
  }

 private:
  static constexpr std::memory_order kTook = success_order<A>(O.take, O.look);

  ZeroedArray<typename A::template atomic<std::uint64_t>> words_;
};

}  // namespace freehold::pool
