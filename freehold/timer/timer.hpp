// SPDX-License-Identifier: MIT
// The interface that all timer structures share: handles, callbacks, time, the concept `Timers`, and co_await.
//
//   TimerWheel<> timers;                                            // or TimerQueue<>
//   const TimerId id = timers.create([&] { connection.ping(); });
//   timers.set(id, Clock::now() + 30s);                             // arms it, or arms it again
//   timers.cancel(id);                                              // true: it was armed, and will not fire
//   if (const auto at = timers.next_expiry()) sleep_until(*at);
//   timers.advance(Clock::now(), 1000);                             // calls what is due, at most 1000 steps of work
//
// The promises, of all structures and of both locking policies (locking.hpp):
//  - A timer fires once for the last set() that no cancel(), destroy() or other set() followed; never before its time.
//  - Time is the latest `now` that advance() was told; one that lies before it counts as it. So a clock that jumps back
//    does no harm, and one that jumps ahead makes all fire that is due by then.
//  - A callback may create, set, cancel and destroy any timer, its own included, but not call advance(). A timer whose
//    callback has run does not fire again within the same advance(): one that is set to a time which has come already
//    fires in the next call, so that every call ends.
//  - Timers fire in the order of their times, as exactly as the structure knows them (a wheel: to a tick); equal times, and
//    those that had come already when they were set, in any order.
//  - A handle of a timer that was destroyed does nothing: every operation says that there is no such timer.
#pragma once
#include <chrono>
#include <compare>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "freehold/base/callback.hpp"

namespace freehold::timer {

/// The clock of all timers.
using Clock = std::chrono::steady_clock;
/// A time of that clock.
using TimePoint = Clock::time_point;

/// Names a timer of one structure; trivially copied, safe after the timer's end.
class TimerId {
 public:
  /// None.
  constexpr TimerId() noexcept = default;
  /// For structures.
  /// @param index       of the timer in its structure
  /// @param generation  how often the index was used; not 0
  constexpr TimerId(std::uint32_t index, std::uint32_t generation) noexcept
      : value_(std::uint64_t{generation} << 32 | index) {}
  /// From value().
  /// @param value  what value() returned
  constexpr explicit TimerId(std::uint64_t value) noexcept : value_(value) {}

  /// Returns whether it names a timer, which may have ended.
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return value_ != 0; }
  /// For structures: which of their timers.
  [[nodiscard]] constexpr std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(value_); }
  /// For structures: which life of it.
  [[nodiscard]] constexpr std::uint32_t generation() const noexcept { return static_cast<std::uint32_t>(value_ >> 32); }
  /// The handle as a number, for interfaces that pass one; 0: none.
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(TimerId, TimerId) noexcept = default;

 private:
  std::uint64_t value_ = 0;
};

/// A timer's function, called by advance(), in its thread, without any lock; it must not throw. It takes the timer, or
/// nothing. It is as large as a pointer at most, such as a lambda that captures one reference, or std::ref() of a larger
/// function, which must outlive the timer. OwnedTimer keeps any function.
using Callback = base::Callback<void(TimerId timer)>;

/// The result of a set().
enum class SetResult : std::uint8_t {
  kNoTimer,   ///< the timer was destroyed, or never created
  kNoMemory,  ///< it is not armed, and was not before
  kArmed,     ///< it is armed, and was not before
  kRearmed,   ///< it is armed again; its former time is forgotten
};
/// Returns whether the timer is armed now.
/// @param result  of a set()
[[nodiscard]] constexpr bool is_set(SetResult result) noexcept { return result >= SetResult::kArmed; }

/// The result of an advance().
struct Progress {
  std::size_t fired = 0;  ///< timers that were called
  bool more = false;      ///< there may be more to do at once: the budget was used up, or a callback set a timer that is due
};

/// A snapshot of a structure.
struct TimerStats {
  std::size_t timers = 0;       ///< that are there; a wheel for any thread counts a destroyed one until the next advance()
  std::size_t peak_timers = 0;  ///< the most that were there at a time
  std::uint64_t fired = 0;      ///< calls of callbacks
};

// create       a timer that is not armed; none if there is no memory or no room.
// set          see SetResult.
// cancel       true: it was armed and will not fire. False: no such timer, or not armed; its callback may be running in
//              another thread right now, or have run.
// destroy      ends it, armed or not, also from its own callback; true: it was there. Another thread's callback may still
//              run.
// expiry       the time that an armed timer was set to, a wheel: the end of that tick; none: it is not armed, or not there.
// stats        see TimerStats.
// now          Time, as above; the end of a wheel's tick. Where advance() is called.
// next_expiry  when advance() should be called next; none while no timer is armed. Never later than the earliest timer's
//              time (a wheel: than the tick in which that ends), and not later than the last `now` when something is due.
// advance      calls what is due at `now`. A call does at most `budget` steps of work: timers fired, moved or forgotten.
//              Pre: budget > 0; not called by a callback, nor by two threads at once.
/// A timer structure, with the functions and promises above.
/// @tparam T  the structure
template <class T>
concept Timers = requires(T& timers, Callback callback, TimerId id, TimePoint time, std::size_t budget) {
  { timers.create(callback) } -> std::same_as<TimerId>;
  { timers.set(id, time) } -> std::same_as<SetResult>;
  { timers.cancel(id) } -> std::same_as<bool>;
  { timers.destroy(id) } -> std::same_as<bool>;
  { std::as_const(timers).expiry(id) } -> std::same_as<std::optional<TimePoint>>;
  { std::as_const(timers).stats() } -> std::same_as<TimerStats>;
  { std::as_const(timers).now() } -> std::same_as<TimePoint>;
  { timers.next_expiry() } -> std::same_as<std::optional<TimePoint>>;
  { timers.advance(time, budget) } -> std::same_as<Progress>;
  { timers.advance(time) } -> std::same_as<Progress>;
};

/// A timer structure whose create, set, cancel, destroy, expiry and stats may be called by any thread, also while the owner
/// is in advance().
/// @tparam T  the structure
template <class T>
concept SharedTimers = Timers<T> && requires { requires T::kShared; };

/// A duration in the clock's unit, rounded up; the greatest or the least one where it lies beyond them, or is no number.
/// @param duration  any unit of std::chrono
template <class Rep, class Period>
[[nodiscard]] constexpr Clock::duration saturated(std::chrono::duration<Rep, Period> duration) noexcept {
  using Seconds = std::chrono::duration<double>;
  if (!(Seconds(duration) < Seconds(Clock::duration::max()))) return Clock::duration::max();
  if (Seconds(duration) <= Seconds(Clock::duration::min())) return Clock::duration::min();
  return std::chrono::ceil<Clock::duration>(duration);
}
/// The time that lies `delay` after `now`; the end or the beginning of time if that is further away.
/// @param delay  any unit of std::chrono
/// @param now    the time to begin at
template <class Rep, class Period>
[[nodiscard]] TimePoint after(std::chrono::duration<Rep, Period> delay, TimePoint now = Clock::now()) noexcept {
  const Clock::duration step = saturated(delay);
  Clock::rep count = 0;
  if (!__builtin_add_overflow(now.time_since_epoch().count(), step.count(), &count))
    return TimePoint(Clock::duration(count));
  return step < Clock::duration::zero() ? TimePoint::min() : TimePoint::max();
}

/// Returns whether a timer of any structure will fire.
/// @param timers  the structure
/// @param id      the timer
template <class T>
[[nodiscard]] bool is_armed(const T& timers, TimerId id) noexcept {
  return timers.expiry(id).has_value();
}
/// How long it is until a timer of any structure fires.
/// @param timers  the structure
/// @param id      the timer
/// @param now     the time to begin at
/// @return zero if the time has come, none if the timer is not armed.
template <class T>
[[nodiscard]] std::optional<Clock::duration> remaining(const T& timers, TimerId id, TimePoint now = Clock::now()) noexcept {
  const std::optional<TimePoint> expiry = timers.expiry(id);
  if (!expiry) return std::nullopt;
  if (*expiry <= now) return Clock::duration::zero();
  Clock::rep count = 0;
  const bool is_beyond = __builtin_sub_overflow(expiry->time_since_epoch().count(), now.time_since_epoch().count(), &count);
  return is_beyond ? Clock::duration::max() : Clock::duration(count);
}

/// An awaitable: the coroutine goes on when a time has come. The result is true then, and false if there was no timer to be
/// had; the coroutine has not waited in that case. One that is destroyed while it waits takes the timer along; with a
/// driver, not while it is being resumed. Threads: as create() and set() of T. Cost: one timer, created and destroyed.
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
    const TimerId id = timers_.create([this] { wake(); });
    if (!id) return false;
    id_ = id;
    has_come_ = true;
    // From set() on this belongs to the thread that calls the timer.
    T& timers = timers_;
    if (is_set(timers.set(id, time_))) return true;
    has_come_ = false;
    return false;
  }
  /// Returns whether the time has come.
  [[nodiscard]] bool await_resume() const noexcept { return has_come_; }

 private:
  void wake() {
    timers_.destroy(std::exchange(id_, {}));
    waiting_.resume();
  }

  T& timers_;
  TimePoint time_;
  TimerId id_;  // while the timer is there
  std::coroutine_handle<> waiting_;
  bool has_come_ = false;
};

}  // namespace freehold::timer

template <>
struct std::hash<freehold::timer::TimerId> {
  [[nodiscard]] std::size_t operator()(freehold::timer::TimerId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value());
  }
};
