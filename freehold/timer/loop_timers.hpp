// SPDX-License-Identifier: MIT
// Timers in an event loop that has a timer already: one of the loop's, set to the next expiry, serves millions of ours.
// asio_timers.hpp and uv_timers.hpp are made of it.
//
//   Invariant: between two calls from outside the loop's timer is set to the next expiry, or to an earlier time, if any
//   timer is armed; if none is, it is not set, so that the loop can end.
//
// Alarm: constructed from a loop, a function and its context. start(time) has the loop call the function at that time or
// somewhat before it, once, in place of what was started before; stop() takes that back; both end with the alarm.
// Threads: the loop's. Cost: the structure's; a set() that is earlier than all others restarts the alarm.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>

#include "freehold/timer/timer.hpp"

namespace freehold::timer {

/// Timers in an event loop, on one timer of the loop. Programs name AsioTimers or UvTimers.
/// @tparam T      the structure, for one thread
/// @tparam Alarm  the loop's timer
/// Threads: the loop's.
template <class T, class Alarm>
class LoopTimers {
 public:
  /// One thread may use it, not several.
  static constexpr bool kShared = false;
  static_assert(Timers<T> && !T::kShared, "a loop is one thread: its timers need no locks");

  /// Timers of a loop.
  /// @param loop  must outlive the timers
  /// @param args  those of the structure's constructor
  template <class Loop, class... Args>
  explicit LoopTimers(Loop& loop, Args&&... args)
      : timers_(std::forward<Args>(args)...),
        alarm_(loop, [](void* self) { static_cast<LoopTimers*>(self)->on_alarm(); }, this) {
    timers_.advance(Clock::now());
  }
  LoopTimers(const LoopTimers&) = delete;
  LoopTimers& operator=(const LoopTimers&) = delete;

  /// Creates a timer that is not armed.
  /// @param callback  is called by advance() when the timer's time has come; see Callback
  /// @return its handle; none if there is no memory or no room.
  [[nodiscard]] TimerId create(Callback callback) noexcept { return timers_.create(callback); }
  /// Arms a timer, or arms it again.
  /// @param id    the timer
  /// @param time  when it fires
  /// @return see SetResult.
  SetResult set(TimerId id, TimePoint time) {
    const SetResult result = timers_.set(id, time);
    const bool is_first = result == SetResult::kArmed && armed_++ == 0;  // also at the end of time: the loop goes on
    if (is_set(result) && (is_first || time < wakes_at_) && !is_firing_) wake_at(time);
    return result;
  }
  /// Arms a timer.
  /// @param id     the timer
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  SetResult set_after(TimerId id, std::chrono::duration<Rep, Period> delay) {
    return set(id, timer::after(delay));
  }
  /// Disarms a timer.
  /// @param id  the timer
  /// @return whether it was armed and will not fire.
  bool cancel(TimerId id) {
    const bool was_armed = timers_.cancel(id);
    if (was_armed) disarmed();
    return was_armed;
  }
  /// Ends a timer, armed or not, also from its own callback.
  /// @param id  the timer
  /// @return whether it was there. Another thread's callback may still run.
  bool destroy(TimerId id) {
    cancel(id);
    return timers_.destroy(id);
  }
  /// The time that an armed timer was set to.
  /// @param id  the timer
  /// @return the time; none: the timer is not armed, or not there.
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept { return timers_.expiry(id); }
  /// A snapshot; see TimerStats.
  [[nodiscard]] TimerStats stats() const noexcept { return timers_.stats(); }
  /// The latest `now` that advance() was given. Where advance() is called.
  [[nodiscard]] TimePoint now() const noexcept { return timers_.now(); }
  /// For coroutines: `co_await timers.after(30ms)`; see Sleep.
  /// @param delay  how long from now; any unit of std::chrono
  template <class Rep, class Period>
  [[nodiscard]] Sleep<LoopTimers> after(std::chrono::duration<Rep, Period> delay) noexcept {
    return {*this, timer::after(delay)};
  }

 private:
  // Timers for one turn: what is left comes after the loop's other work.
  static constexpr std::size_t kBudget = 1000;

  void wake_at(TimePoint time) {
    wakes_at_ = time;
    alarm_.start(time);
  }
  void disarmed() {
    if (--armed_ > 0 || is_firing_) return;
    wakes_at_ = TimePoint::max();
    alarm_.stop();  // the loop may end
  }
  void on_alarm() {
    wakes_at_ = TimePoint::max();
    is_firing_ = true;
    armed_ -= timers_.advance(Clock::now(), kBudget).fired;
    is_firing_ = false;
    if (armed_ == 0) return;  // next_expiry() may be the time of timers that were cancelled
    if (const auto next = timers_.next_expiry()) wake_at(*next);
  }

  T timers_;
  TimePoint wakes_at_ = TimePoint::max();
  std::size_t armed_ = 0;  // while a turn fires timers, those that it has called so far are in it still
  bool is_firing_ = false;
  Alarm alarm_;  // the last: it calls the others
};

}  // namespace freehold::timer
