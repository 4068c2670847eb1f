// A wheel in an event loop that has a timer already: one asio timer, set to the wheel's next expiry, serves a hundred
// thousand of the wheel's. The loop is one thread, so the wheel needs no locks.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "freehold/timer/timer_wheel.hpp"

using namespace std::chrono_literals;
using freehold::timer::Clock;
using freehold::timer::TimePoint;
using freehold::timer::TimerId;

namespace {

class WheelOnLoop {
 public:
  explicit WheelOnLoop(boost::asio::io_context& loop) : alarm_(loop) {}

  freehold::timer::TimerWheel<>& timers() { return wheel_; }
  void set(TimerId id, TimePoint time) {
    wheel_.set(id, time);
    if (time < wakes_at_) wake_at(time);
  }
  // After timers were set by other means, and when the loop begins.
  void watch() {
    const auto next = wheel_.next_expiry();
    if (next && *next < wakes_at_) wake_at(*next);
  }

 private:
  void wake_at(TimePoint time) {
    wakes_at_ = time;
    alarm_.expires_at(time);  // cancels the former wait
    alarm_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      wakes_at_ = TimePoint::max();
      // What is left after so many calls comes after the loop's other work: next_expiry() is not later than now then.
      wheel_.advance(Clock::now(), 1000);
      watch();
    });
  }

  freehold::timer::TimerWheel<> wheel_;
  boost::asio::steady_timer alarm_;
  TimePoint wakes_at_ = TimePoint::max();
};

}  // namespace

int main() {
  boost::asio::io_context loop;
  WheelOnLoop wheel(loop);
  int fired = 0;
  auto count = [&] { ++fired; };
  std::vector<TimerId> ids;
  const TimePoint start = Clock::now();
  for (int i = 0; i < 100'000; ++i) {
    ids.push_back(freehold::timer::create_calling(wheel.timers(), count));
    wheel.set(ids.back(), start + std::chrono::milliseconds(i % 100 == 0 ? i / 5'000 : 60'000));
  }
  for (int i = 0; i < 100'000; ++i)
    if (i % 100 != 0) wheel.timers().cancel(ids[static_cast<std::size_t>(i)]);
  loop.run();  // returns when no timer is armed any more
  std::printf("%d of 100000 fired\n", fired);
}
