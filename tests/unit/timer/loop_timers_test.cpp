// SPDX-License-Identifier: MIT
// Timers in the loops of Boost.Asio and libuv: they fire in the loop, the loop ends when none is armed, and nothing is left.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "freehold/timer/asio_timers.hpp"
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/timer_queue.hpp"
#include "freehold/timer/uv_timers.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using timer::Clock;
using timer::OwnedTimer;
using timer::TimerId;
using namespace std::chrono_literals;

struct Asio {
  template <class T>
  using Timers = timer::AsioTimers<T>;
  boost::asio::io_context loop{};
  void run() {
    loop.restart();
    loop.run();
  }
  bool is_alive() {
    loop.restart();
    loop.poll();
    return !loop.stopped();
  }
};
struct Uv {
  template <class T>
  using Timers = timer::UvTimers<T>;
  uv_loop_t loop{};
  Uv() { uv_loop_init(&loop); }
  ~Uv() {
    run();  // what was closed
    EXPECT_EQ(uv_loop_close(&loop), 0);
  }
  void run() { uv_run(&loop, UV_RUN_DEFAULT); }
  bool is_alive() { return uv_run(&loop, UV_RUN_NOWAIT) != 0; }
};

template <class Case>
class LoopTimers : public testing::Test {
 protected:
  using Timers = typename Case::first_type::template Timers<typename Case::second_type>;
  typename Case::first_type loop_;
  std::optional<Timers> timers_{std::in_place, loop_.loop};
};
using Cases = testing::Types<std::pair<Asio, timer::TimerWheel<>>, std::pair<Asio, timer::TimerQueue<>>,
                             std::pair<Uv, timer::TimerWheel<>>, std::pair<Uv, timer::TimerQueue<>>>;
TYPED_TEST_SUITE(LoopTimers, Cases);

TYPED_TEST(LoopTimers, TimerAtTheEndOfTime_TheLoopGoesOnWithoutACall) {
  int calls = 0;
  OwnedTimer timer(*this->timers_, [&] { ++calls; });
  EXPECT_FALSE(this->loop_.is_alive());
  for (const auto first : {timer::TimePoint::max(), timer::TimePoint::min()}) {
    timer.every(first, std::chrono::hours::max());
    EXPECT_TRUE(this->loop_.is_alive());
    EXPECT_TRUE(this->loop_.is_alive());
  }
  EXPECT_EQ(calls, 1);
  timer.cancel();
  EXPECT_FALSE(this->loop_.is_alive());
}

TYPED_TEST(LoopTimers, ManyTimers_FireInTheLoopAndItEnds) {
  auto& timers = *this->timers_;
  int fired = 0;
  auto count = [&] { ++fired; };
  std::vector<TimerId> ids;
  const auto start = Clock::now();
  for (int i = 0; i < 3000; ++i) {
    ids.push_back(timers.create(std::ref(count)));
    timers.set(ids.back(), i % 3 == 0 ? start + std::chrono::milliseconds(i / 300) : start + 10min);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 3 == 0) continue;
    EXPECT_TRUE(timers.cancel(ids[i]));
  }
  this->loop_.run();
  EXPECT_EQ(fired, 1000);
  EXPECT_LT(Clock::now() - start, 5min);
}

// All that is armed is cancelled, or destroyed, before the loop runs and in it.
TYPED_TEST(LoopTimers, LastTimerDisarmed_LoopEndsAtOnce) {
  auto& timers = *this->timers_;
  auto nothing = [] {};
  const TimerId a = timers.create(std::ref(nothing)), b = timers.create(std::ref(nothing));
  timers.set(a, Clock::now() + 10min);
  timers.set(b, Clock::now() + 20min);
  EXPECT_TRUE(timers.cancel(b));
  EXPECT_TRUE(timers.destroy(a));
  const auto start = Clock::now();
  this->loop_.run();
  auto cancel_b = [&] { EXPECT_TRUE(timers.cancel(b)); };
  const TimerId canceller = timers.create(std::ref(cancel_b));
  timers.set(b, Clock::now() + 10min);
  timers.set_after(canceller, 1ms);
  this->loop_.run();
  EXPECT_LT(Clock::now() - start, 5min);
}

TYPED_TEST(LoopTimers, PeriodicTimerThatEndsItself_CalledAsOften) {
  int calls = 0;
  OwnedTimer<std::remove_reference_t<decltype(*this->timers_)>> timer;
  timer = OwnedTimer(*this->timers_, [&] {
    if (++calls == 5) timer.reset();
  });
  timer.every(1ms);
  this->loop_.run();
  EXPECT_EQ(calls, 5);
}

TYPED_TEST(LoopTimers, SoonerThanAllOthers_NotKeptWaiting) {
  auto& timers = *this->timers_;
  bool fired = false;
  auto nothing = [] {};
  const TimerId late = timers.create(std::ref(nothing));
  timers.set(late, Clock::now() + 10min);
  OwnedTimer soon(timers, [&] {
    fired = true;
    timers.cancel(late);
  });
  soon.set_after(1ms);
  this->loop_.run();
  EXPECT_TRUE(fired);
}

// The loop outlives the timers, whose alarm may be on its way.
TYPED_TEST(LoopTimers, TimersEndFirst_NothingIsCalled) {
  auto fail = [] { FAIL(); };
  const TimerId id = this->timers_->create(std::ref(fail));
  this->timers_->set(id, Clock::now());
  this->timers_.reset();
  this->loop_.run();
}

}  // namespace
}  // namespace freehold::test
