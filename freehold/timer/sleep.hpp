// SPDX-License-Identifier: MIT
// Timers for coroutines of C++20: `co_await timers.after(30ms)` with TimerWheel, TimerQueue and Driver, or
// `co_await Sleep(timers, time)` with any structure. The coroutine goes on in the thread that calls advance(); true says
// that the time has come, false that there was no timer to be had, and then it has not waited.
//
//   Invariant: once the timer is armed, this belongs to the thread that calls it: nothing here is touched after set().
//
// Threads: as create() and set() of T. A coroutine that is destroyed while it waits takes the timer along; with a driver,
// not while it is being resumed. Cost: one timer, created and destroyed; nothing is allocated beside it.
#pragma once
#include <coroutine>
#include <utility>

#include "freehold/timer/timer.hpp"

namespace freehold::timer {

/// An awaitable: the coroutine goes on when a time has come. The result is true then, and false if there was no timer to be
/// had; the coroutine has not waited in that case.
/// @tparam T  the timers
template <class T>
class [[nodiscard]] Sleep {
 public:
  /// @param timers  must outlive the wait
  /// @param time    when the coroutine goes on
  Sleep(T& timers, TimePoint time) noexcept : timers_(timers), time_(time) {}
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;
  /// Takes the timer along, if the coroutine is destroyed while it waits.
  ~Sleep() {
    if (!id_) return;
    timers_.destroy(id_);
    if constexpr (requires(T& timers) { timers.quiesce(); }) timers_.quiesce();
  }

  /// Requirements of an awaitable.
  static constexpr bool await_ready() noexcept { return false; }
  /// Arms the timer.
  /// @param waiting  the coroutine
  bool await_suspend(std::coroutine_handle<> waiting) noexcept {
    waiting_ = waiting;
    const TimerId id = timers_.create(wake, this);
    if (!id) return false;
    id_ = id;
    has_come_ = true;
    T& timers = timers_;
    if (is_set(timers.set(id, time_))) return true;
    has_come_ = false;
    return false;
  }
  /// Returns whether the time has come.
  [[nodiscard]] bool await_resume() const noexcept { return has_come_; }

 private:
  static void wake(void* context, TimerId id) {
    Sleep& self = *static_cast<Sleep*>(context);
    self.timers_.destroy(id);
    self.id_ = {};
    self.waiting_.resume();
  }

  T& timers_;
  TimePoint time_;
  TimerId id_;  // while the timer is there
  std::coroutine_handle<> waiting_;
  bool has_come_ = false;
};

}  // namespace freehold::timer
