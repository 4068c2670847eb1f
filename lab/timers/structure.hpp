// SPDX-License-Identifier: MIT
// The interface of a timer structure for the timed loops. Adapters provide it for our structures (own_timers.hpp) and for
// those of other libraries (library_timers.hpp). Timers have numbers, 0 to n-1; times count from the call of begin().
#pragma once
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace freehold::cli::timers {

using Nanoseconds = std::chrono::nanoseconds;

// Timers are set within this time. A structure whose own clock cannot be moved uses a shorter one (kRealClockHour).
inline constexpr Nanoseconds kHour = std::chrono::hours(1);
inline constexpr Nanoseconds kRealClockHour = std::chrono::milliseconds(90);
[[nodiscard]] constexpr Nanoseconds squeezed(Nanoseconds time) noexcept { return time / (kHour / kRealClockHour); }

// begin      a new beginning: everything that was set so far has fired or was cancelled.
// create     timer i; destroy ends it. Both may be no more than a constructor where the user brings the timer's memory.
// set        arms timer i, for `time` from the beginning.
// cancel     true: it was armed, and will not fire.
// look       the owner's regular call: `time` has passed since the beginning.
// await      waits until all timers set within the hour are due; not timed.
// expire     calls all that was set within the hour.
// kOrder     the resolution of times: timers that lie nearer to each other may fire in any order.
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
