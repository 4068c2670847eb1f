// SPDX-License-Identifier: MIT
// An array of 32-bit flags, one for each slot, and a cursor that goes round, all behind a lock: the pool S3 of "Memory
// management, pools compared", and the lock's price beside lock_free_flags.hpp.
//
//   Invariant, under the lock: a flag is kFree  <=>  its slot is free; free_ is their number. The cursor is a hint.
//
// Linearisation: within the lock. Any thread; blocks. Cost: the lock, the flag's line, and a look at every slot that is
// taken before the next free one: the fuller the pool, the longer. Bookkeeping: 4 bytes a slot and a constant.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "lab/strategies/pool_lock.hpp"

namespace freehold::pool {

template <sync::Atomics A, class Contention, PoolLockOrders O>
class LockedFlagsPool {
 public:
  explicit LockedFlagsPool(const PoolShape& shape) : slots_(shape), flags_(shape.slots), free_(shape.slots) {}

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    const std::size_t slot = take();
    return slot == Slots::kNone ? nullptr : slots_.hand_out(slot);
  }

  void release(void* slot) noexcept {
    const std::size_t number = slots_.take_back(slot);
    if (number == Slots::kNone) return;
    contention_.operated();
    Guard guard(lock_, contention_);
    flags_[number].store(kFree);
    free_.store(free_.load() + 1);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  using Guard = typename PoolLock<A, O>::template Guard<Contention>;
  static constexpr std::uint32_t kFree = 0, kTaken = 1;

  [[nodiscard]] std::size_t next(std::size_t slot) const noexcept { return slot + 1 == slots_.count() ? 0 : slot + 1; }

  [[nodiscard]] std::size_t take() noexcept {
    Guard guard(lock_, contention_);
    if (free_.load() == 0) return Slots::kNone;
    std::size_t slot = cursor_.load();
    while (flags_[slot].load() != kFree) slot = next(slot);
    flags_[slot].store(kTaken);
    cursor_.store(next(slot));
    free_.store(free_.load() - 1);
    return slot;
  }

  // Nobody writes after construction.
  Slots slots_;
  // Under the lock.
  ZeroedArray<typename A::template var<std::uint32_t>> flags_;
  alignas(base::kCacheLine) PoolLock<A, O> lock_;
  typename A::template var<std::size_t> cursor_{0};
  typename A::template var<std::size_t> free_;
  // Any thread.
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct LockedFlags {
  static constexpr std::string_view kName = "locked-flags";
  static constexpr std::string_view kSource = "article 2, S3";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = LockedFlagsPool<A, Contention, O>;
};

}  // namespace freehold::pool
