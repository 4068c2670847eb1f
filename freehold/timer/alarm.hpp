// SPDX-License-Identifier: MIT
// The sleep of an owner until its timers' next expiry; a thread that sets an earlier time wakes it. No wake-up is missed:
// the owner publishes until when it will sleep, and then looks at its timers once more; a thread that sets a time looks at
// that afterwards. A full fence on either side makes one of the two see the other (store buffering). And a wake between
// look() and the sleep changes the word that the owner sleeps on.
//
// Threads: look() and sleep() are the owner's; wake_for() and wake() anybody's.
// Cost: wake_for a fence and a load; when it wakes, a write and a system call. sleep: a fence and a system call.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/os/futex.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/timer/timer.hpp"

namespace freehold::timer {

// Sleeps while `word` is `old`, at most until the time; may return for no reason. steady_clock is CLOCK_MONOTONIC.
struct FutexSleep {
  static void wait_until(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                         std::optional<TimePoint> until) noexcept {
    os::Futex::wait_until(&word, old, until.value_or(TimePoint::max()).time_since_epoch().count());
  }
};

struct AlarmOrders {
  // seq_cst: the two fences of the file head; each side writes, and then reads what the other writes.
  static constexpr std::memory_order kFence = std::memory_order_seq_cst;
  // acquire: pairs with kWake; what was done before a wake that this look sees is seen by what the owner looks at then.
  static constexpr std::memory_order kLook = std::memory_order_acquire;
  static constexpr std::memory_order kWake = std::memory_order_release;
};

template <sync::Atomics A = sync::NativeAtomics, class Sleep = FutexSleep, class Orders = AlarmOrders>
class Alarm {
 public:
  // Call this before the owner looks for work: every wake from now on ends the next sleep().
  [[nodiscard]] std::uint32_t look() const noexcept { return wakes_.load(Orders::kLook); }

  // Until the next expiry, or until somebody wakes. `looked`: of look(). Pre: nothing is due, as far as the owner knows.
  template <Timers T>
  void sleep(T& timers, std::uint32_t looked) noexcept {
    const std::optional<TimePoint> next = timers.next_expiry();
    publish(next.value_or(TimePoint::max()));
    A::fence(Orders::kFence);
    const std::optional<TimePoint> still = timers.next_expiry();
    if (still.has_value() == next.has_value() && still >= next) Sleep::wait_until(wakes_, looked, next);
    publish(kAwake);
  }

  // After a set(): wakes the owner if it sleeps for longer.
  void wake_for(TimePoint time) noexcept {
    A::fence(Orders::kFence);
    // relaxed: the fence orders it.
    if (time.time_since_epoch().count() < sleeps_until_.load(std::memory_order_relaxed)) wake();
  }
  void wake() noexcept {
    wakes_.fetch_add(1, Orders::kWake);
    A::notify_one(wakes_);
  }

 private:
  static constexpr TimePoint kAwake = TimePoint::min();

  // relaxed: the fence that follows orders it; after a sleep, an old value costs somebody a wake for nothing.
  void publish(TimePoint time) noexcept { sleeps_until_.store(time.time_since_epoch().count(), std::memory_order_relaxed); }

  alignas(base::kCacheLine) typename A::template atomic<std::int64_t> sleeps_until_{kAwake.time_since_epoch().count()};
  typename A::template atomic<std::uint32_t> wakes_{0};
};

}  // namespace freehold::timer
