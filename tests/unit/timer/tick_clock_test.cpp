// SPDX-License-Identifier: MIT
#include "freehold/timer/tick_clock.hpp"
#include "tests/support/test.hpp"

namespace freehold::timer {
namespace {

TimePoint at(std::int64_t count) { return TimePoint(Clock::duration(count)); }

// Which ticks are the neighbours of a time is asked of the ticks' own beginnings; both sides of the clock's zero.
template <class Tick>
void expect_neighbours(std::int64_t count) {
  using Ticking = TickClock<Tick>;
  const TimePoint time = at(count);
  const Ticks before = Ticking::tick_before(time), after = Ticking::tick_after(time);
  EXPECT_LE(Ticking::time_of(before), time) << count;
  EXPECT_GT(Ticking::time_of(before + 1), time) << count;
  EXPECT_GE(Ticking::time_of(after), time) << count;
  EXPECT_LT(Ticking::time_of(after - 1), time) << count;
  EXPECT_EQ(after - before, count % Ticking::kTick == 0 ? 0U : 1U) << count;
}

TEST(TickClock, TimesAroundZero_LieBetweenTheirTicks) {
  using Millis = TickClock<std::chrono::milliseconds>;
  for (const std::int64_t whole : {-3, -2, -1, 0, 1, 2, 3})
    for (const std::int64_t part : {-1L, 0L, 1L, 1000L}) {
      expect_neighbours<std::chrono::milliseconds>(whole * Millis::kTick + part);
      expect_neighbours<std::chrono::microseconds>(whole * 1000 + part);
    }
}

TEST(TickClock, UnitOfTheClockItself_TicksAreTimes) {
  for (const std::int64_t count : {-5L, -1L, 0L, 1L, 5L}) expect_neighbours<Clock::duration>(count);
}

TEST(TickClock, EndsOfTime_StayInOrderAndAreNoTimersPlace) {
  using Ticking = TickClock<Clock::duration>;
  EXPECT_EQ(Ticking::tick_after(TimePoint::max()), kNowhere - 1);
  EXPECT_EQ(Ticking::time_of(kNowhere - 1), TimePoint::max());
  EXPECT_EQ(Ticking::tick_before(TimePoint::min()), 0U);
  using Seconds = TickClock<std::chrono::seconds>;
  EXPECT_LT(Seconds::tick_after(TimePoint::min()), Seconds::tick_after(at(0)));
  EXPECT_GT(Seconds::tick_after(TimePoint::max()), Seconds::tick_before(at(0)));
  EXPECT_EQ(Seconds::time_of(Seconds::tick_before(TimePoint::min())), TimePoint::min());
  EXPECT_EQ(Seconds::time_of(Seconds::tick_after(TimePoint::max())), TimePoint::max());
}

}  // namespace
}  // namespace freehold::timer
