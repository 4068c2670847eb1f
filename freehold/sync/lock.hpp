// SPDX-License-Identifier: MIT
// A mutex of four bytes for the engine's slow paths (Drepper, "Futexes Are Tricky", mutex 3).
// The state is free, locked, or locked with possible waiters. A thread that finds it locked spins briefly, then marks it
// contended and sleeps in the kernel; unlocking a contended one wakes one sleeper. A woken thread takes it as contended
// again, since it cannot know whether others still sleep: that is the invariant that loses no wake-up. Any thread. Constant
// initialised, so usable before main; no owner is stored, so a fork handler may lock it in the parent and unlock it in the
// child; allocates nothing, throws nothing, keeps errno. Not recursive, not fair. lock and unlock: one read-modify-write
// each on one line when uncontended; a system call each when contended.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::sync {

// The default policy: does not count how often the lock was taken, or made a thread sleep.
struct IgnoreWaits {
  static constexpr void taken() noexcept {}   // by the calling thread, which holds the lock now
  static constexpr void waited() noexcept {}  // the calling thread is about to sleep
};

// Counts how often a thread went to sleep for the lock; for the stats.
template <Atomics A>
class CountWaits {
 public:
  constexpr CountWaits() noexcept = default;
  static constexpr void taken() noexcept {}
  // relaxed: a statistic, it publishes nothing.
  void waited() noexcept { waits_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t count() const noexcept { return waits_.load(std::memory_order_relaxed); }
  // For readers outside the process.
  [[nodiscard]] const auto& counter() const noexcept { return waits_; }

 private:
  typename A::template atomic<std::uint32_t> waits_{0};
};

struct MutexOrders {
  // acquire: pairs with the release in unlock(); what the former holder wrote is visible to the next.
  static constexpr std::memory_order kTake = std::memory_order_acquire;
  static constexpr std::memory_order kTakeContended = std::memory_order_acquire;
  // release: pairs with both takes.
  static constexpr std::memory_order kGive = std::memory_order_release;
};

template <Atomics A, class Waits = IgnoreWaits, class Orders = MutexOrders>
class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Returns when the calling thread holds the lock. Pre: it does not hold it already.
  void lock() noexcept {
    if (!try_lock()) lock_slow();
  }

  // Takes the lock if it is free. Returns whether it did.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = kFree;
    // relaxed on failure: nothing is read under a lock that was not taken.
    const bool took = state_.compare_exchange_strong(expected, kLocked, Orders::kTake, std::memory_order_relaxed);
    if (took) waits_.taken();
    return took;
  }

  // Pre: the calling thread, or in a child of fork its parent, holds the lock.
  void unlock() noexcept {
    if (state_.exchange(kFree, Orders::kGive) == kContended) A::notify_one(state_);
  }

  // In a child of fork, which has one thread: the thread that held the lock is gone.
  void reset() noexcept { state_.store(kFree, std::memory_order_relaxed); }  // relaxed: there is no other thread

  [[nodiscard]] const Waits& waits() const noexcept { return waits_; }

 private:
  static constexpr std::uint32_t kFree = 0, kLocked = 1, kContended = 2;
  // About the length of a critical section here (a few hundred nanoseconds) at 40 cycles a pause.
  static constexpr std::uint32_t kSpins = 32;

  [[gnu::noinline]] void lock_slow() noexcept {
    // The simulator also explores going to sleep at once.
    for (std::uint32_t left = A::decide(kSpins, std::uint32_t{0}); left > 0; --left) {
      // relaxed: a glance that decides whether the take is worth its bus traffic.
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
      A::pause();
    }
    while (state_.exchange(kContended, Orders::kTakeContended) != kFree) {
      waits_.waited();
      A::wait(state_, kContended);
    }
    waits_.taken();
  }

  typename A::template atomic<std::uint32_t> state_{kFree};
  [[no_unique_address]] Waits waits_{};
};
static_assert(sizeof(Mutex<NativeAtomics>) == 4);

// Holds a mutex for a scope: Guard guard(mutex_);
template <class M>
class [[nodiscard]] Guard {
 public:
  explicit Guard(M& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~Guard() { mutex_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  M& mutex_;
};

}  // namespace freehold::sync
