// SPDX-License-Identifier: MIT
// Limits and conveniences of the timer structures (freehold/timer/timer.hpp). tests/stress/timer_reference_test.cpp holds
// them to all else that they promise.
#include <limits>
#include <unordered_map>

#include "freehold/timer/timer_state.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/hooked_atomics.hpp"
#include "tests/unit/timer/implementations.hpp"

namespace freehold::test {
namespace {

using timer::Progress;
using timer::SetResult;
using timer::TimePoint;
using timer::TimerId;
using namespace std::chrono_literals;

// ---- limits

// Nothing is thrown, what is armed stays so, and room comes back.
template <class T>
void expect_refusal_and_recovery(T& timers) {
  int calls = 0;
  auto count = [&] { ++calls; };
  std::vector<TimerId> ids;
  for (;;) {
    const TimerId id = timers.create(std::ref(count));
    if (!id) break;
    ids.push_back(id);
    if (timers.set(id, at(1)) == SetResult::kNoMemory) break;
    ASSERT_LT(ids.size(), 1'000'000u);
  }
  ASSERT_FALSE(ids.empty());
  const TimerId first = ids.front();
  EXPECT_EQ(timers.set(first, at(2)), SetResult::kRearmed);
  timers.destroy(ids.back());
  ids.pop_back();
  timers.advance(at(1));
  EXPECT_EQ(calls, static_cast<int>(ids.size()) - 1);
  timers.advance(at(2));
  EXPECT_EQ(calls, static_cast<int>(ids.size()));
  const TimerId again = timers.create(std::ref(count));
  ASSERT_TRUE(again);
  EXPECT_EQ(timers.set(again, at(3)), SetResult::kArmed);
  timers.advance(at(3));
  EXPECT_EQ(calls, static_cast<int>(ids.size()) + 1);
}
// The owner looks at 64 of those that wait in its mailbox; the earliest is among the others, wherever it was posted.
TEST(TimersShared, MoreInTheMailboxThanAreLookedAt_TheOwnerDoesNotSleepPastThem) {
  constexpr int kTimers = 100;
  for (const int earliest : {0, 1, kTimers / 2, kTimers - 1}) {
    timer::TimerWheel<timer::AnyThread> wheel(1000);
    int calls = 0;
    auto count = [&] { ++calls; };
    for (int i = 0; i < kTimers; ++i)
      ASSERT_EQ(wheel.set(wheel.create(std::ref(count)), at(i == earliest ? 3 : 100'000)), SetResult::kArmed);
    for (int rounds = 0; calls == 0; ++rounds) {
      const auto next = wheel.next_expiry();
      ASSERT_TRUE(next.has_value());
      ASSERT_LE(*next, at(3)) << earliest;
      ASSERT_LT(rounds, 10) << "called early again and again";
      wheel.advance(std::max(*next, wheel.now()));
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(wheel.now(), at(3));
  }
}

TEST(TimersLimited, NoRoom_NoneOrNoMemoryAndRoomComesBack) {
  timer::TimerWheel<> wheel(100);
  expect_refusal_and_recovery(wheel);
  timer::TimerWheel<timer::AnyThread> shared_wheel(100);
  expect_refusal_and_recovery(shared_wheel);
  timer::TimerQueue<> queue(100);
  expect_refusal_and_recovery(queue);
}

// The article's queue takes three blocks for a time that no other timer has: whichever is refused, nothing is lost and
// nothing leaks.
TEST(TimersLimited, DequeQueueOnAFullHeap_ArmedTimersKeepTheirTimes) {
  heap::OwnerLockedHeap heap({.name = "limited", .limit_bytes = 128 * 1024});
  {
    using Allocator = heap::HeapAllocator<std::byte, heap::OwnerLockedHeap>;
    timer::DequeTimerQueue<Allocator> queue{Allocator(heap)};
    int calls = 0;
    auto count = [&] { ++calls; };
    std::vector<TimerId> armed;
    TimerId idle;
    for (int i = 0;; ++i) {
      const TimerId id = queue.create(std::ref(count));
      if (!id) break;
      if (queue.set(id, at(1 + i)) == SetResult::kNoMemory) {
        idle = id;
        break;
      }
      armed.push_back(id);
      ASSERT_LT(armed.size(), 1'000'000u);
    }
    ASSERT_FALSE(armed.empty());
    EXPECT_FALSE(queue.cancel(idle));
    const int many = static_cast<int>(armed.size());
    std::size_t refused = 0;
    for (int i = 0; i < many; ++i)
      refused += queue.set(armed[static_cast<std::size_t>(i)], at(1'000'000 + i)) == SetResult::kNoMemory;
    EXPECT_GT(refused, 0u);
    queue.advance(at(many));
    EXPECT_EQ(calls, static_cast<int>(refused));
    queue.advance(at(2'000'000));
    EXPECT_EQ(calls, many);
    EXPECT_EQ(queue.set(armed.front(), at(3'000'000)), SetResult::kArmed);
  }
  EXPECT_EQ(heap.stats().live_objects, 0u);
}

// Budgets count what is moved and forgotten, too: a call never looks at more timers than it was allowed.
TEST(TimersLimited, WheelOfFarAndCancelledTimers_BudgetBoundsTheWork) {
  timer::TimerWheel<> wheel;
  int calls = 0;
  auto count = [&] { ++calls; };
  constexpr int kTimers = 10'000;
  wheel.advance(at(0));
  for (int i = 0; i < kTimers; ++i) {
    const TimerId id = wheel.create(std::ref(count));
    wheel.set(id, at(1'000'000 + i % 100));  // on a high level, in one slot or two
    if (i % 2 == 0) wheel.cancel(id);
  }
  // Each is looked at once on each of at most four levels, so so many calls with a budget of 10 are enough, and the work of
  // every one of them shows in how many it takes.
  int advances = 0;
  Progress progress;
  do {
    progress = wheel.advance(at(2'000'000), 10);
    ASSERT_LE(progress.fired, 10u);
    ++advances;
    if (progress.more) {
      const auto next = wheel.next_expiry();
      ASSERT_TRUE(!next || *next <= at(2'000'000));  // none: the others were cancelled
    }
  } while (progress.more);
  EXPECT_EQ(calls, kTimers / 2);
  EXPECT_GE(advances, kTimers / 10);
  EXPECT_LE(advances, 4 * kTimers / 10);
}

// ---- conveniences

TEST(After, AnyUnit_RoundedUpAndNeverPastTheEndOfTime) {
  EXPECT_EQ(timer::after(5s, at(0)), at(5000));
  EXPECT_EQ(timer::after(-5ms, at(0)), at(-5));
  EXPECT_EQ(timer::after(std::chrono::duration<double, std::micro>(0.5), at(0)), at(0) + 500ns);
  EXPECT_EQ(timer::after(std::chrono::duration<double, std::nano>(0.5), at(0)), at(0) + 1ns);
  EXPECT_EQ(timer::after(std::chrono::hours(24) * 365 * 1000, at(0)), TimePoint::max());
  EXPECT_EQ(timer::after(std::chrono::nanoseconds::max(), at(0)), TimePoint::max());
  EXPECT_EQ(timer::after(std::chrono::hours::min(), at(0)), at(0) + timer::Clock::duration::min());
  EXPECT_EQ(timer::after(std::chrono::hours::min(), TimePoint(-1ns)), TimePoint::min());
  EXPECT_EQ(timer::after(std::chrono::duration<double>(-1e300), TimePoint(-1ns)), TimePoint::min());
  EXPECT_EQ(timer::after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()), at(0)), TimePoint::max());
  EXPECT_EQ(timer::after(std::chrono::duration<double>(std::numeric_limits<double>::infinity()), at(0)), TimePoint::max());
}

template <class T>
class Timers : public testing::Test {};
TYPED_TEST_SUITE(Timers, TimerTypes);

TYPED_TEST(Timers, SetAfter_FiresThenAndIdsAreKeys) {
  TypeParam timers;
  int fired = 0;
  const auto call = [&] { ++fired; };
  std::unordered_map<TimerId, int> by_id;
  const TimerId id = timers.create(std::ref(call));
  by_id[id] = 7;
  const auto before = timer::Clock::now();
  EXPECT_EQ(timers.set(id, timer::after(std::chrono::minutes(1))), timer::SetResult::kArmed);
  timers.advance(before + std::chrono::seconds(59));
  EXPECT_EQ(fired, 0);
  timers.advance(timer::Clock::now() + std::chrono::seconds(61));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(by_id.at(id), 7);
}

// Atomics that tell of a thread's nap, in which the system lets a thread go on that was preempted.
struct NappingAtomics : HookedAtomics {
  static inline thread_local std::atomic<bool>* napped = nullptr;
  static void yield() noexcept { *napped = true; }
};

// A thread that is preempted while it sets a timer gets no CPU from a real-time thread that only spins.
TEST(SharedTimerState, AskedAndSetWhileAnotherThreadSetsIt_BothNap) {
  timer::SharedState<NappingAtomics> state;
  const std::uint32_t life = state.begin();
  std::atomic<bool> asker_napped{false}, setter_napped{false};
  std::thread asker, setter;
  unsigned changes = 0;
  // The second change of an arm() is that of the tick: it holds the word then.
  NappingAtomics::interrupt_at(2, changes, [&] {
    asker = std::thread([&] {
      NappingAtomics::napped = &asker_napped;
      EXPECT_TRUE(state.armed_for(life).has_value());
    });
    setter = std::thread([&] {
      NappingAtomics::napped = &setter_napped;
      EXPECT_EQ(state.arm(life, 9).result, timer::SetResult::kRearmed);
    });
    for (int i = 0; i < 1000 && !(asker_napped && setter_napped); ++i) std::this_thread::sleep_for(1ms);
  });
  EXPECT_EQ(state.arm(life, 7).result, timer::SetResult::kArmed);
  asker.join();
  setter.join();
  EXPECT_TRUE(asker_napped);
  EXPECT_TRUE(setter_napped);
  EXPECT_EQ(state.due(), 9U);
}

}  // namespace
}  // namespace freehold::test
