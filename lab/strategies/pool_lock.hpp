// SPDX-License-Identifier: MIT
// The lock of the pools that have one: the mutex of freehold/sync, with its orders as a value for the order mutants, and
// telling the pool's contention policy when another thread held it.
// Any thread. Cost: two read-modify-writes of one shared line for an operation; two system calls more when contended.
#pragma once
#include <atomic>

#include "freehold/sync/lock.hpp"

namespace freehold::pool {

struct PoolLockOrders {
  // acquire: pairs with give; what the former holder wrote is visible to the next.
  std::memory_order take = std::memory_order_acquire;
  std::memory_order take_contended = std::memory_order_acquire;
  // release: pairs with both takes.
  std::memory_order give = std::memory_order_release;
};

template <sync::Atomics A, PoolLockOrders O = PoolLockOrders{}>
class PoolLock {
  struct Orders {
    static constexpr std::memory_order kTake = O.take, kTakeContended = O.take_contended, kGive = O.give;
  };
  sync::Mutex<A, sync::IgnoreWaits, Orders> mutex_;

 public:
  // Holds the lock for a scope.
  template <class Contention>
  class [[nodiscard]] Guard {
   public:
    Guard(PoolLock& lock, Contention& contention) noexcept : mutex_(lock.mutex_) {
      if (mutex_.try_lock()) return;
      contention.waited();
      mutex_.lock();
    }
    ~Guard() { mutex_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    sync::Mutex<A, sync::IgnoreWaits, Orders>& mutex_;
  };
};

}  // namespace freehold::pool
