// SPDX-License-Identifier: MIT
// Coroutines that wait for timers.

#include <coroutine>
#include <exception>

#include "freehold/timer/driver.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/timer/implementations.hpp"

namespace freehold::test {
namespace {

using timer::Clock;
using timer::Sleep;
using namespace std::chrono_literals;

// Runs at once; owns its frame, which stays until the end of the object.
class Task {
 public:
  struct promise_type {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    static std::suspend_never initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    static void return_void() noexcept {}
    static void unhandled_exception() { std::terminate(); }
  };
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  ~Task() {
    if (frame_) frame_.destroy();
  }
  [[nodiscard]] bool is_done() const { return frame_.done(); }

 private:
  std::coroutine_handle<promise_type> frame_;
};

template <class T>
class Sleeps : public testing::Test {
 protected:
  Sleeps() { timers_.advance(at(0)); }
  Task steps(std::vector<int>& seen) {
    for (int i = 1; i <= 3; ++i) {
      EXPECT_TRUE(co_await Sleep(timers_, at(10 * i)));
      seen.push_back(i);
    }
  }
  T timers_;
};
TYPED_TEST_SUITE(Sleeps, TimerTypes);

TYPED_TEST(Sleeps, ThreeInARow_EachAtItsTimeAndNoTimerLeft) {
  std::vector<int> seen;
  const Task task = this->steps(seen);
  EXPECT_TRUE(seen.empty());
  this->timers_.advance(at(9));
  EXPECT_TRUE(seen.empty());
  this->timers_.advance(at(10));
  EXPECT_EQ(seen, (std::vector{1}));
  this->timers_.advance(at(20));
  this->timers_.advance(at(30));
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
  EXPECT_TRUE(task.is_done());
  this->timers_.advance(at(31));
  EXPECT_EQ(this->timers_.stats().timers, 0u);
}

TYPED_TEST(Sleeps, DestroyedWhileItWaits_TheTimerGoesAlong) {
  std::vector<int> seen;
  {
    const Task task = this->steps(seen);
  }
  this->timers_.advance(at(100));
  this->timers_.advance(at(100));
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(this->timers_.stats().timers, 0u);
}

Task wait_in_vain(timer::TimerWheel<>& wheel, int& result) { result = co_await Sleep(wheel, at(10)) ? 1 : 0; }
TEST(SleepLimits, NoRoom_GoesOnAtOnceAndSaysSo) {
  timer::TimerWheel<> wheel(1);
  const auto taken = wheel.create([] {});
  int result = -1;
  const Task task = wait_in_vain(wheel, result);
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(task.is_done());
  EXPECT_TRUE(wheel.destroy(taken));
}

Task hop(timer::Driver<>& timers, std::atomic<int>& left) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(co_await timers.after(i % 3 == 0 ? 0us : 200us));
  --left;
}

Task wait_long(timer::Driver<>& timers, bool& done) {
  (void)co_await timers.after(1h);
  done = true;
}
TEST(SleepOnADriver, DestroyedWhileItWaits_TheOthersGoOn) {
  timer::Driver<> timers;
  bool done = false;
  std::atomic<int> left = 1;
  {
    const Task task = wait_long(timers, done);
    EXPECT_FALSE(task.is_done());
  }
  const Task other = hop(timers, left);
  while (left > 0) std::this_thread::yield();
  timers.quiesce();
  EXPECT_TRUE(other.is_done());
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace freehold::test
