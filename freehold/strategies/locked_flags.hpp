// SPDX-License-Identifier: MIT
// An array of 32-bit flags, one for each slot, and a cursor that goes round, all behind a lock: the pool S3 of "Memory
// management, pools compared", and the lock's price beside lock_free_flags.hpp. The same pool behind three kinds of lock.
//
//   Invariant, under the lock: a flag is kFree  <=>  its slot is free; free_ is their number. The cursor is a hint.
//
// Linearisation: within the lock. Any thread; blocks. Cost: the lock, the flag's line, and a look at every slot that is
// taken before the next free one: the fuller the pool, the longer. Bookkeeping: 4 bytes a slot and a constant.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/pool/memory.hpp"
#include "freehold/strategies/pool_lock.hpp"
#include "freehold/strategies/slot_set_pool.hpp"

namespace freehold::pool {

template <sync::Atomics A, class Lock>
class LockedFlagSet {
 public:
  static constexpr std::size_t kNone = Slots::kNone;

  explicit LockedFlagSet(std::size_t slots) : flags_(slots), free_(slots) {}

  template <class Contention>
  [[nodiscard]] std::size_t take(Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    if (free_.load() == 0) return kNone;
    std::size_t slot = cursor_.load();
    while (flags_[slot].load() != kFree) slot = next(slot);
    flags_[slot].store(kTaken);
    cursor_.store(next(slot));
    free_.store(free_.load() - 1);
    return slot;
  }
  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    const PoolGuard guard(lock_, contention);
    flags_[slot].store(kFree);
    free_.store(free_.load() + 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1;

  [[nodiscard]] std::size_t next(std::size_t slot) const noexcept { return slot + 1 == flags_.size() ? 0 : slot + 1; }

  // Under the lock.
  ZeroedArray<typename A::template var<std::uint32_t>> flags_;
  alignas(base::kCacheLine) Lock lock_;
  typename A::template var<std::size_t> cursor_{0};
  typename A::template var<std::size_t> free_;
};

/// A flag for each slot and a cursor that goes round, behind a lock: S3 of article 2.
struct LockedFlags {
  static constexpr std::string_view kName = "locked-flags";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = SlotSetPool<LockedFlagSet<A, PoolLock<A, O>>, Contention>;
};

template <template <sync::Atomics A, SpinLockOrders O> class Lock>
struct FlagsLockedBy {
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr SpinLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, SpinLockOrders O = kOrders>
  using Pool = SlotSetPool<LockedFlagSet<A, Lock<A, O>>, Contention>;
};
/// LockedFlags behind a spin lock.
struct SpinLockedFlags : FlagsLockedBy<SpinLock> {
  static constexpr std::string_view kName = "locked-flags-spin";
};
/// LockedFlags behind a ticket lock.
struct TicketLockedFlags : FlagsLockedBy<TicketLock> {
  static constexpr std::string_view kName = "locked-flags-ticket";
};

}  // namespace freehold::pool
