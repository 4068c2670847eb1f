// What the timed loops need of a structure of timers; adapters give it to ours (own_timers.hpp) and to those of libraries
// (library_timers.hpp). Timers have numbers, 0 to n-1; times are distances from the structure's beginning, which is when
// begin() was called.
#pragma once
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace freehold::cli::timers {

using Nanoseconds = std::chrono::nanoseconds;

// Within which timers are set; who has a clock of its own that nobody can move squeezes it together (kRealClockHour).
inline constexpr Nanoseconds kHour = std::chrono::hours(1);
inline constexpr Nanoseconds kRealClockHour = std::chrono::milliseconds(90);
[[nodiscard]] constexpr Nanoseconds squeezed(Nanoseconds time) noexcept { return time / (kHour / kRealClockHour); }

// begin      a new beginning: everything that was set so far has fired or was cancelled.
// create     timer i; destroy ends it. Both may be no more than a constructor where the user brings the timer's memory.
// set        arms timer i, for `time` from the beginning.
// cancel     true: it was armed, and will not fire.
// look       what an owner does now and then: `time` has passed since the beginning.
// await      nothing but time passes, until what was set within the hour is due; not timed.
// expire     calls all that was set within the hour.
// kOrder     how exactly times are told apart: what lies nearer to each other may fire in any order.
// Constructed with the number of timers, and whether the hour is to be squeezed if the clock cannot be moved.
template <class S>
concept Structure = std::constructible_from<S, std::uint32_t, bool> && requires(S& s, std::uint32_t i, Nanoseconds time) {
  s.begin();
  s.create(i);
  s.destroy(i);
  s.set(i, time);
  { s.cancel(i) } -> std::same_as<bool>;
  s.look(time);
  s.await();
  s.expire();
  { S::kOrder } -> std::convertible_to<Nanoseconds>;
};

}  // namespace freehold::cli::timers
