// SPDX-License-Identifier: MIT
// Timers as objects: what they own, when they end, and periods; on every structure, and on drivers.
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/driver.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/timer/implementations.hpp"

namespace freehold::test {
namespace {

using timer::Clock;
using timer::Driver;
using timer::OwnedTimer;
using timer::SetResult;
using namespace std::chrono_literals;

template <class T>
class Owned : public testing::Test {
 protected:
  Owned() { timers_.advance(at(0)); }
  T timers_;
};
using OneThread =
    testing::Types<timer::DequeTimerQueue<>, timer::HeapTimerQueue<>, timer::TimerQueue<>, timer::TimerWheel<>>;
TYPED_TEST_SUITE(Owned, OneThread);

TYPED_TEST(Owned, Captures_LiveAsLongAsTheTimer) {
  auto shared = std::make_shared<int>(0);
  auto alone = std::make_unique<int>(5);
  {
    OwnedTimer timer(this->timers_, [shared, alone = std::move(alone)] { *shared += *alone; });
    EXPECT_EQ(shared.use_count(), 2);
    EXPECT_FALSE(timer.is_armed());
    EXPECT_EQ(timer.set(at(10)), SetResult::kArmed);
    EXPECT_EQ(timer.expiry(), at(10));
    EXPECT_EQ(timer.remaining(at(4)), Clock::duration(Step(6)));
    this->timers_.advance(at(10));
    EXPECT_EQ(*shared, 5);
    timer.set(at(20));
  }
  EXPECT_EQ(shared.use_count(), 1);
  this->timers_.advance(at(30));
  EXPECT_EQ(*shared, 5);
  this->timers_.advance(at(30));
  EXPECT_EQ(this->timers_.stats().timers, 0u);
}

TYPED_TEST(Owned, Moved_OneTimerAndItsFunctionOnce) {
  int calls = 0;
  OwnedTimer<TypeParam> outer;
  EXPECT_FALSE(outer);
  {
    OwnedTimer timer(this->timers_, [&] { ++calls; });
    timer.set(at(1));
    outer = std::move(timer);
  }
  this->timers_.advance(at(1));
  EXPECT_EQ(calls, 1);
  outer = OwnedTimer(this->timers_, [&] { calls += 10; });
  EXPECT_EQ(this->timers_.stats().timers, 1u);
  outer.set(at(2));
  this->timers_.advance(at(2));
  EXPECT_EQ(calls, 11);
}

TYPED_TEST(Owned, Every_OncePerPeriodWithoutDriftAndMissedOnesLeftOut) {
  std::vector<timer::TimePoint> next;
  OwnedTimer<TypeParam> timer;
  timer = OwnedTimer(this->timers_, [&] { next.push_back(*timer.expiry()); });
  timer.every(at(10), Step(10));
  this->timers_.advance(at(9));
  EXPECT_TRUE(next.empty());
  this->timers_.advance(at(13));  // late by three
  this->timers_.advance(at(19));
  this->timers_.advance(at(20));
  this->timers_.advance(at(57));  // 30 fires; 40 and 50 are left out
  this->timers_.advance(at(60));
  EXPECT_EQ(next, (std::vector{at(20), at(30), at(60), at(70)}));
  EXPECT_TRUE(timer.cancel());
  this->timers_.advance(at(1000));
  EXPECT_EQ(next.size(), 4u);
  timer.set(at(1001));  // once
  this->timers_.advance(at(1001));
  EXPECT_FALSE(timer.is_armed());
}

TYPED_TEST(Owned, PeriodicInItsOwnFunction_CancelledSetOtherwiseOrEnded) {
  int calls = 0;
  OwnedTimer<TypeParam> timer;
  const auto token = std::make_shared<int>();
  timer = OwnedTimer(this->timers_, [&, token] {
    ++calls;
    switch (calls) {
      case 2: EXPECT_TRUE(timer.cancel()); break;
      case 3: EXPECT_EQ(timer.set(at(500)), SetResult::kRearmed); break;
      case 4: timer.reset(); break;
      default: break;
    }
  });
  timer.every(at(10), Step(10));
  for (int i = 0; i < 100; ++i) this->timers_.advance(at(i));
  EXPECT_EQ(calls, 2);
  timer.every(at(110), Step(10));
  for (int i = 100; i < 400; ++i) this->timers_.advance(at(i));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(token.use_count(), 2);
  this->timers_.advance(at(500));
  EXPECT_EQ(calls, 4);
  EXPECT_FALSE(timer);
  EXPECT_EQ(token.use_count(), 1);
  this->timers_.advance(at(5000));
  EXPECT_EQ(calls, 4);
}

// "Never" as the greatest time, or as a period that no time lies beyond; and a first time as far back as there is one.
TYPED_TEST(Owned, EndlessPeriods_FirstTimeOnceAndNeverAgain) {
  using std::chrono::hours, std::chrono::nanoseconds;
  int calls = 0;
  OwnedTimer timer(this->timers_, [&] { ++calls; });
  const auto expect = [&](int expected) {
    for (int i = 1; i < 50; ++i) this->timers_.advance(this->timers_.now() + Step(1));
    EXPECT_EQ(calls, expected);
  };
  for (const auto first : {at(0), timer::TimePoint::min()}) {
    calls = 0;
    timer.every(first, nanoseconds::max());
    expect(1);
    timer.every(first, hours::max());
    expect(2);
    timer.every(first, hours(24) * 365 * 292);
    expect(3);
  }
  timer.every(timer::TimePoint::min(), hours(1));
  expect(4);
  EXPECT_GT(*timer.expiry(), this->timers_.now());
  EXPECT_LE(*timer.expiry(), this->timers_.now() + hours(1));
  timer.every(timer::TimePoint::max(), Step(1));
  expect(4);
  timer.every(hours::max());
  expect(4);
  EXPECT_GT(timer.remaining(timer::TimePoint::min()), hours(24) * 365 * 290);
  // At the end of time it fires once, as no later time is left; or never, as a wheel rounds it up.
  while (this->timers_.advance(timer::TimePoint::max()).more) ASSERT_LT(calls, 10);
  EXPECT_EQ(timer.is_armed(), calls == 4);
  EXPECT_LE(calls, 5);
}

TEST(OwnedTimers, NoRoom_BadAllocAndTheFunctionGone) {
  timer::TimerWheel<> wheel(1);
  const auto token = std::make_shared<int>();
  const OwnedTimer first(wheel, [] {});
  EXPECT_THROW(OwnedTimer(wheel, [token] {}), std::bad_alloc);
  EXPECT_EQ(token.use_count(), 1);
}

template <class T>
class OwnedByDriver : public testing::Test {};
using Drivers = testing::Types<Driver<>, Driver<timer::TimerQueue<timer::AnyThread>>>;
TYPED_TEST_SUITE(OwnedByDriver, Drivers);

// The function sets its own timer again through the object, which another thread ends, by reset() or by another timer.
TYPED_TEST(OwnedByDriver, EndWhileItSetsItself_NoCallAfterwards) {
  TypeParam timers;
  std::atomic<int> late{0}, calls{0};
  for (int round = 0; round < 300; ++round) {
    std::atomic<bool> has_ended{false};
    OwnedTimer<TypeParam> timer;
    timer = OwnedTimer(timers, [&] {
      late += has_ended;
      ++calls;
      timer.set_after(0ms);
    });
    timer.set_after(0ms);
    if (round % 3 == 0) std::this_thread::sleep_for(100us);
    if (round % 2 == 0)
      timer.reset();
    else
      timer = OwnedTimer(timers, [] {});
    has_ended = true;
    if (round % 50 == 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(late, 0);
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace freehold::test
