// SPDX-License-Identifier: MIT
// Drivers of every structure that any thread may use: real time, real threads.
#include <condition_variable>
#include <mutex>

#include "freehold/timer/driver.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "lab/timers/deque_timer_queue.hpp"
#include "lab/timers/heap_timer_queue.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using timer::AnyThread;
using timer::Clock;
using timer::TimePoint;
using timer::TimerId;
using namespace std::chrono_literals;

// Counts calls, lets a thread wait for them, remembers when the last one came.
class Calls {
 public:
  void operator()() {
    const std::lock_guard guard(mutex_);
    ++count_;
    last_ = Clock::now();
    changed_.notify_all();
  }
  bool wait_for(int calls) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return count_ >= calls; });
  }
  int count() {
    const std::lock_guard guard(mutex_);
    return count_;
  }
  TimePoint last() {
    const std::lock_guard guard(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  TimePoint last_;
};

template <class T>
class Drivers : public testing::Test {};
using DrivenTypes = testing::Types<timer::TimerWheel<AnyThread>, timer::TimerWheel<AnyThread, std::chrono::microseconds>,
                                   timer::TimerQueue<AnyThread>, timer::DequeTimerQueue<std::allocator<char>, AnyThread>>;
TYPED_TEST_SUITE(Drivers, DrivenTypes);

TYPED_TEST(Drivers, Set_CallsAfterTheTimeInAnotherThread) {
  Calls calls;
  timer::Driver<TypeParam> driver;
  const TimerId id = driver.create(std::ref(calls));
  const TimePoint due = Clock::now() + 5ms;
  EXPECT_EQ(driver.set(id, due), timer::SetResult::kArmed);
  ASSERT_TRUE(calls.wait_for(1));
  EXPECT_GE(calls.last(), due);
  EXPECT_FALSE(driver.cancel(id));
}

TYPED_TEST(Drivers, StopInACallback_TheThreadEnds) {
  struct Context {
    timer::Driver<TypeParam> driver;
    Calls calls;
  } context;
  const TimerId id = context.driver.create([&context](TimerId timer) {
    context.driver.stop();
    context.driver.set_after(timer, 1ms);
    context.calls();
  });
  context.driver.set_after(id, 0ms);
  ASSERT_TRUE(context.calls.wait_for(1));
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(context.calls.count(), 1);
  context.driver.stop();
}

// Destroyed timers are used again, though only create() has the driver's thread look at them. On a busy machine that thread
// may not run for a while, so there are several tries.
TYPED_TEST(Drivers, OneTimerAliveForEver_MemoryHolds) {
  constexpr std::uint32_t kTimes = 1'500'000, kMost = kTimes / 4;
  constexpr int kTries = 4;
  std::uint32_t highest = kTimes;
  for (int attempt = 0; attempt < kTries && highest >= kMost; ++attempt) {
    timer::Driver<TypeParam> driver;
    highest = 0;
    for (std::uint32_t i = 0; i < kTimes; ++i) {
      const TimerId id = driver.create([] {});
      ASSERT_TRUE(static_cast<bool>(id)) << i;
      driver.set_after(id, 60s);
      ASSERT_TRUE(driver.destroy(id));
      if (!std::is_same_v<TypeParam, timer::DequeTimerQueue<std::allocator<char>, AnyThread>>)
        highest = std::max(highest, id.index());
    }
  }
  EXPECT_LT(highest, kMost);
}
TEST(Driver, CreatedAndDestroyedForEverAtTheLimit_NeverRunsOut) {
  timer::Driver<> driver(std::size_t{100});
  Calls calls;
  const TimerId kept = driver.create(std::ref(calls));
  for (int i = 0; i < 20'000; ++i) {
    const TimerId id = driver.create([] {});
    ASSERT_TRUE(static_cast<bool>(id)) << i;
    if (i % 2 == 0) driver.set_after(id, 60s);
    ASSERT_TRUE(driver.destroy(id));
  }
  std::vector<TimerId> all;
  while (const TimerId id = driver.create([] {})) all.push_back(id);
  EXPECT_EQ(all.size(), 99U);
  driver.set_after(kept, 0ms);
  EXPECT_TRUE(calls.wait_for(1));
  driver.stop();
  EXPECT_FALSE(static_cast<bool>(driver.create([] {}))) << "and does not wait for a thread that ended";
}

// The callback's own thread is the one that would reclaim: it does not wait for itself.
TEST(Driver, CreatedInACallbackAtTheLimit_NoTimer) {
  timer::Driver<> driver(std::size_t{1});
  struct Seen {
    timer::Driver<>& driver;
    std::atomic<int> created{-1};
  } seen{driver};
  const TimerId id = driver.create([&seen] { seen.created = static_cast<bool>(seen.driver.create([] {})) ? 1 : 0; });
  driver.set_after(id, 0ms);
  for (int i = 0; i < 10'000 && seen.created < 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(seen.created, 0);
}

// A wheel whose owner is held at the end of a round, after its last look, and goes slowly from then on.
struct HeldWheel : timer::TimerWheel<AnyThread> {
  using timer::TimerWheel<AnyThread>::TimerWheel;
  static inline std::atomic<bool> hold{false}, held{false}, slow{false};
  static inline std::atomic<unsigned> refused{0};
  TimerId create(timer::Callback callback) noexcept {
    const TimerId id = BasicTimerWheel::create(callback);
    if (!id) ++refused;
    return id;
  }
  timer::Progress advance(TimePoint now, std::optional<std::size_t> budget = std::nullopt) noexcept {
    if (slow) std::this_thread::sleep_for(5ms);
    const timer::Progress progress = BasicTimerWheel::advance(now, budget);
    while (hold) {
      held = true;
      std::this_thread::yield();
    }
    return progress;
  }
};
// The thread says that nothing is left to do, from a look that came before timers were set and destroyed: more than it
// handles in its next round. Whoever wants one of those waits on.
TEST(Driver, ThreadsLookCameBeforeTheTimersWereDestroyed_CreateWaitsOn) {
  constexpr std::size_t kTimers = 1500;
  Calls calls;
  timer::Driver<HeldWheel> driver(kTimers);
  std::vector<TimerId> all;
  while (const TimerId id = driver.create(std::ref(calls))) all.push_back(id);
  ASSERT_EQ(all.size(), kTimers);
  HeldWheel::hold = true;
  driver.set_after(all[0], 0ms);
  while (!HeldWheel::held) std::this_thread::yield();
  for (std::size_t i = 1; i < kTimers; ++i)
    i == kTimers / 2 ? void(driver.destroy(all[i])) : void(driver.set_after(all[i], 1h));
  HeldWheel::refused = 0;
  TimerId created{};
  std::thread creator([&] { created = driver.create(std::ref(calls)); });
  while (HeldWheel::refused == 0) std::this_thread::yield();
  std::this_thread::sleep_for(50ms);  // it waits for a round
  HeldWheel::slow = true;
  HeldWheel::hold = false;
  creator.join();
  HeldWheel::slow = false;
  EXPECT_TRUE(static_cast<bool>(created));
  driver.stop();
}

// A structure for one thread has no driver: its set() would race with the driver's thread.
template <class T>
concept HasDriver = requires { typename timer::Driver<T>; };
static_assert(HasDriver<timer::TimerWheel<AnyThread>> && HasDriver<timer::HeapTimerQueue<AnyThread>>);
static_assert(!HasDriver<timer::TimerWheel<>> && !HasDriver<timer::TimerQueue<>> && !HasDriver<timer::HeapTimerQueue<>> &&
              !HasDriver<timer::DequeTimerQueue<>>);

TYPED_TEST(Drivers, CallbackQuiescesAndSetsItself_NoDeadlock) {
  struct Again {
    timer::Driver<TypeParam> driver;
    Calls calls;
  } again;
  const TimerId id = again.driver.create([&again](TimerId self) {
    again.driver.quiesce();
    again.driver.set_after(self, 1ms);
    again.calls();
  });
  again.driver.set_after(id, 1ms);
  EXPECT_TRUE(again.calls.wait_for(5));
  again.driver.stop();
}

}  // namespace
}  // namespace freehold::test
