// SPDX-License-Identifier: MIT
// A wheel for any thread on the simulated machine, and what became of its timers: the ledger of the models.
#pragma once
#include <array>
#include <chrono>
#include <optional>

#include "freehold/timer/timer_wheel.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/support/inside.hpp"

namespace freehold::model {

using timer::SetResult;
using timer::TimePoint;
using timer::TimerId;

constexpr TimePoint at(int nanoseconds) {
  return TimePoint(std::chrono::hours(1000)) + std::chrono::nanoseconds(nanoseconds);
}
inline constexpr int kForEver = 1'000'000;

template <class A, class Orders>
using WheelOf = timer::BasicTimerWheel<timer::AnyThreadOn<A>, std::chrono::nanoseconds, Orders>;

// A wheel, and what became of its timers.
template <class A, class Orders>
class Ledger {
 public:
  using Wheel = WheelOf<A, Orders>;

  explicit Ledger(std::size_t timers = 4) : wheel_(timers) { wheel_.advance(at(0)); }

  struct Timer {
    Ledger* ledger = nullptr;
    TimerId id;
    typename A::template var<int> note{0};  // written before set(), read by the callback
    std::array<int, 8> calls{};             // the times of the owner's advance()
    int called = 0;
    int armed = 0, rearmed = 0, cancelled = 0, destroyed = 0;  // how often set() or cancel() said so
  };

  void create(Timer& timer) { SIM_CHECK(try_create(timer)); }
  bool try_create(Timer& timer) {
    timer.ledger = this;
    timer.id = wheel_.create([&called = timer](TimerId id) {
      SIM_CHECK(id == called.id);
      (void)called.note.load();
      if (called.called < 8) called.calls[static_cast<std::size_t>(called.called)] = called.ledger->now_;
      ++called.called;
    });
    return static_cast<bool>(timer.id);
  }
  void set(Timer& timer, int time) {
    const SetResult result = wheel_.set(timer.id, at(time));
    timer.armed += result == SetResult::kArmed;
    timer.rearmed += result == SetResult::kRearmed;
  }
  void cancel(Timer& timer) { timer.cancelled += wheel_.cancel(timer.id); }
  void destroy(Timer& timer) { timer.destroyed += wheel_.destroy(timer.id); }
  void advance(int now) {
    now_ = now;
    wheel_.advance(at(now));
  }
  // Armed and seen by the owner.
  void create_armed(Timer& timer, int time) {
    create(timer);
    set(timer, time);
    advance(0);
  }
  // Every armed timer was called or cancelled, and no other.
  static void expect_balance(const Timer& timer) { SIM_CHECK(timer.armed == timer.called + timer.cancelled); }
  void finish(const Timer& timer) {
    timer::Inside::check_invariants(wheel_);
    advance(kForEver);
    timer::Inside::check_invariants(wheel_);
    expect_balance(timer);
    SIM_CHECK(wheel_.next_expiry() == std::nullopt);
  }
  Wheel& wheel() { return wheel_; }

 private:
  Wheel wheel_;
  int now_ = 0;
};

}  // namespace freehold::model
