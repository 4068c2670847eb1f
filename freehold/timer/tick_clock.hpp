// SPDX-License-Identifier: MIT
// The ticks of a timing wheel: times in a unit of the wheel's own, counted from the earliest one there can be, so that all
// are positive. Constant time; no state.
#pragma once
#include <cstdint>
#include <limits>

#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_state.hpp"

namespace freehold::timer {

// `Tick`: a duration of std::chrono, a multiple of the clock's own unit.
template <class Tick>
struct TickClock {
  static constexpr std::int64_t kTick = std::chrono::duration_cast<Clock::duration>(Tick(1)).count();
  static_assert(kTick > 0 && Tick(1) == Clock::duration(kTick), "a multiple of the clock's own unit");

  // The first tick that begins at `time` or after it. The last one is that of the end of time; kNowhere is none.
  [[nodiscard]] static Ticks tick_after(TimePoint time) noexcept {
    const std::int64_t count = time.time_since_epoch().count();
    const Ticks tick = biased(count / kTick + (count % kTick > 0 ? 1 : 0));
    return tick == kNowhere ? tick - 1 : tick;
  }
  // The last tick that begins at `time` or before it.
  [[nodiscard]] static Ticks tick_before(TimePoint time) noexcept {
    const std::int64_t count = time.time_since_epoch().count();
    return biased(count / kTick - (count % kTick < 0 ? 1 : 0));
  }
  // When a tick begins.
  [[nodiscard]] static TimePoint time_of(Ticks tick) noexcept {
    if (tick == kNowhere - 1) return TimePoint::max();
    const auto count = static_cast<std::int64_t>(tick ^ kSign);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / kTick;
    if (count > kMost) return TimePoint::max();
    if (count < -kMost) return TimePoint::min();
    return TimePoint(Clock::duration(count * kTick));
  }

 private:
  static constexpr Ticks kSign = Ticks{1} << 63;
  [[nodiscard]] static Ticks biased(std::int64_t ticks) noexcept { return static_cast<Ticks>(ticks) ^ kSign; }
};

}  // namespace freehold::timer
