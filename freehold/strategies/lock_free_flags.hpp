// SPDX-License-Identifier: MIT
// An array of 32-bit flags, one for each slot, and a cursor that goes round: the lock-free pool S2 of "Memory management,
// pools compared". acquire looks from the cursor on for a flag that is free and takes it by compare-exchange; release
// clears the flag.
//
//   Invariant: a flag is kFree  <=>  its slot is free. The cursor is a hint.
//
// Linearisation: acquire at its compare-exchange (null: where shortage.hpp says), release at its exchange. Any thread;
// lock-free. Cost: one atomic each on the flag's line, a store to the cursor's line that all share, and one load for every
// slot that is taken before the next free one: the fuller the pool, the longer. Bookkeeping: 4 bytes a slot and a constant.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/pool/memory.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

struct FreeFlagsOrders {
  // seq_cst: a sweep that finds nothing relies on having seen what was released before it began.
  std::memory_order look = std::memory_order_seq_cst;
  // acquire: pairs with put; the slot's former owner is done with it. release: a sweep that sees the flag taken sees, too,
  // what its taker counted before.
  std::memory_order take = std::memory_order_acq_rel;
  // seq_cst: release, pairs with take; and before the look at who searches.
  std::memory_order put = std::memory_order_seq_cst;
};

struct LockFreeFlagsOrders {
  FreeFlagsOrders flags;
  ShortageOrders shortage;
};

// A flag for each slot, all free at first.
template <sync::Atomics A, FreeFlagsOrders O>
class FreeFlags {
 public:
  // Errors: std::bad_alloc.
  explicit FreeFlags(std::size_t slots) : flags_(slots) {}

  [[nodiscard]] std::size_t count() const noexcept { return flags_.size(); }

  // Takes the slot if it is free.
  template <class Contention>
  [[nodiscard]] bool take(std::size_t slot, Contention& contention) noexcept {
    std::uint32_t flag = flags_[slot].load(O.look);
    if (flag != kFree) return false;
    if (flags_[slot].compare_exchange_strong(flag, kTaken, kTook, O.look)) return true;
    contention.retried();
    return false;
  }
  void put(std::size_t slot) noexcept { flags_[slot].exchange(kFree, O.put); }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1;
  static constexpr std::memory_order kTook = success_order<A>(O.take, O.look);
  ZeroedArray<typename A::template atomic<std::uint32_t>> flags_;
};

template <sync::Atomics A, LockFreeFlagsOrders O>
class LockFreeFlagSet {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockFreeFlagSet(std::size_t slots) : flags_(slots) {}

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const std::size_t slot = sweep(contention);
    if (slot != kNone) [[likely]]
      return slot;
    return shortage_.search(kNone, [&] { return sweep(contention); });
  }
  void put(std::size_t slot, auto&) noexcept {
    flags_.put(slot);
    shortage_.released();
  }

 private:
  [[nodiscard]] std::size_t next(std::size_t slot) const noexcept { return slot + 1 == flags_.count() ? 0 : slot + 1; }

  // Takes the first free slot from the cursor on.
  template <class Contention>
  [[nodiscard]] std::size_t sweep(Contention& contention) noexcept {
    std::size_t slot = cursor_.load(std::memory_order_relaxed);  // relaxed: a hint
    for (std::size_t i = 0; i < flags_.count(); ++i, slot = next(slot)) {
      if (!flags_.take(slot, contention)) continue;
      cursor_.store(next(slot), std::memory_order_relaxed);
      return slot;
    }
    return kNone;
  }

  FreeFlags<A, O.flags> flags_;
  alignas(base::kCacheLine) typename A::template atomic<std::size_t> cursor_{0};
  Shortage<A, O.shortage> shortage_;
};

/// A flag for each slot and a cursor that goes round, without a lock: S2 of article 2.
struct LockFreeFlags {
  static constexpr std::string_view kName = "lock-free-flags";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr LockFreeFlagsOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, LockFreeFlagsOrders O = kOrders>
  using Pool = SlotSetPool<LockFreeFlagSet<A, O>, Contention>;
};

}  // namespace freehold::pool
