// SPDX-License-Identifier: MIT
// The locks of the pools that have one, each with its orders as a value for the order mutants. A pool takes its lock's type
// as a parameter, so that the same pool can be measured behind each of them.
//
//   lock(contention)   tells the pool's contention policy when another thread held it
//
//   PoolLock     the mutex of freehold/sync: a thread that waits sleeps. Cost: two read-modify-writes of one shared line for an
//                operation; two system calls more when contended
//   SpinLock     a thread that waits reads the word until it is free, and lets others run now and then. Cost: one
//                read-modify-write and a store
//   TicketLock   the same in the order in which the threads came: fair, and slow where a thread that has its turn does not run
//
// Any thread. Sources: freehold/sync/lock.hpp; Mellor-Crummey and Scott 1991.
#pragma once
#include <atomic>
#include <cstdint>

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
 public:
  template <class Contention>
  void lock(Contention& contention) noexcept {
    if (mutex_.try_lock()) return;
    contention.waited();
    mutex_.lock();
  }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  struct Orders {
    static constexpr std::memory_order kTake = O.take, kTakeContended = O.take_contended, kGive = O.give;
  };
  sync::Mutex<A, sync::IgnoreWaits, Orders> mutex_;
};

struct SpinLockOrders {
  // acquire: pairs with give.
  std::memory_order take = std::memory_order_acquire;
  // release: pairs with take.
  std::memory_order give = std::memory_order_release;
};

template <sync::Atomics A, SpinLockOrders O = SpinLockOrders{}>
class SpinLock {
 public:
  template <class Contention>
  void lock(Contention& contention) noexcept {
    if (try_lock()) return;
    contention.waited();
    sync::wait_until<A>([&] { return try_lock(); });
  }
  void unlock() noexcept { taken_.store(0, O.give); }

 private:
  // relaxed: a glance that decides whether the exchange is worth its bus traffic.
  bool try_lock() noexcept { return taken_.load(std::memory_order_relaxed) == 0 && taken_.exchange(1, O.take) == 0; }

  typename A::template atomic<std::uint32_t> taken_{0};
};

template <sync::Atomics A, SpinLockOrders O = SpinLockOrders{}>
class TicketLock {
 public:
  template <class Contention>
  void lock(Contention& contention) noexcept {
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the turn is the acquire
    const auto is_my_turn = [&] { return turn_.load(O.take) == mine; };
    if (is_my_turn()) return;
    contention.waited();
    sync::wait_until<A>(is_my_turn);
  }
  void unlock() noexcept { turn_.store(turn_.load(std::memory_order_relaxed) + 1, O.give); }  // relaxed: ours

 private:
  typename A::template atomic<std::uint32_t> next_{0};
  typename A::template atomic<std::uint32_t> turn_{0};
};

// Holds a pool's lock for a scope.
template <class Lock, class Contention>
class [[nodiscard]] PoolGuard {
 public:
  PoolGuard(Lock& lock, Contention& contention) noexcept : lock_(lock) { lock.lock(contention); }
  ~PoolGuard() { lock_.unlock(); }
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace freehold::pool
