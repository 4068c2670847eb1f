// SPDX-License-Identifier: MIT
// A pool over a set of its free slots' numbers: what all strategies have in common that keep nothing but such a set.
//
// A Set is made from the number of slots, all of them free. It has take(contention), which returns the number of a free slot
// or Set::kNone, and put(slot, contention), which makes the slot free again.
//
// Linearisation, progress, bookkeeping: the set's. Any thread.
#pragma once
#include <concepts>
#include <cstddef>

#include "freehold/base/bits.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/slots.hpp"

namespace freehold::pool {

template <class Set, class Contention>
class SlotSetPool {
 public:
  // `more`: what the set is made from beside the number of slots.
  template <class... More>
    requires std::constructible_from<Set, std::size_t, More...>
  explicit SlotSetPool(const PoolShape& shape, More... more) : slots_(shape), free_(shape.slots, more...) {}

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    const auto slot = free_.take(contention_);
    return slot == Set::kNone ? nullptr : slots_.hand_out(slot);
  }

  void release(void* slot) noexcept {
    const std::size_t number = slots_.take_back(slot);
    if (number == Slots::kNone) return;
    contention_.operated();
    free_.put(number, contention_);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }
  // At rest.
  [[nodiscard]] bool check_invariants() const noexcept
    requires requires(const Set& set) { set.check_invariants(); }
  {
    return free_.check_invariants();
  }

 private:
  // Written by the constructor only.
  Slots slots_;

 protected:
  // Any thread.
  Set free_;

 private:
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

}  // namespace freehold::pool
