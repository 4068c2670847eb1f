// SPDX-License-Identifier: MIT
// OwnedTimer beside a driver's thread, under every interleaving within the bounds: its end, its cancel and its set against
// the round in which it is called, and its end against its function, which sets it again. The oracle: what the function uses
// may go when the timer has ended (a race on plain data else); a periodic timer that was cancelled is called no more, and
// one that was set otherwise is called once for that. Each part of it that is left out is noticed.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "freehold/timer/driver.hpp"
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/scenarios.hpp"

namespace freehold {
namespace {

using sim::Execution;
using sim::Failure;
using sim::SimAtomics;
using timer::TimePoint;
using timer::TimerId;

constexpr TimePoint at(int nanoseconds) {
  return TimePoint(std::chrono::hours(1000)) + std::chrono::nanoseconds(nanoseconds);
}
constexpr std::chrono::nanoseconds kPeriod{10};
using SimAnyThread = timer::AnyThreadOn<SimAtomics>;

// OwnedTimer needs this of a driver, without the thread: its rounds are called by the scenario.
template <bool kWaits = true, bool kAnswers = true>
class SimDriver {
 public:
  SimDriver() { wheel_.advance(at(0)); }
  [[nodiscard]] TimerId create(timer::Callback callback) noexcept { return wheel_.create(callback); }
  timer::SetResult set(TimerId id, TimePoint time) noexcept { return wheel_.set(id, time); }
  bool cancel(TimerId id) noexcept { return wheel_.cancel(id); }
  bool destroy(TimerId id) noexcept { return wheel_.destroy(id); }
  [[nodiscard]] std::optional<TimePoint> expiry(TimerId id) const noexcept {
    return kAnswers ? wheel_.expiry(id) : std::nullopt;
  }
  [[nodiscard]] TimePoint now() const noexcept { return wheel_.now(); }
  void quiesce() noexcept {
    if (kWaits) rounds_.quiesce();
  }
  void round(int now) {
    rounds_.begin();
    wheel_.advance(at(now));
    rounds_.end();
  }

 private:
  timer::TimerWheel<SimAnyThread, std::chrono::nanoseconds> wheel_{4};
  timer::Rounds<SimAtomics> rounds_;
};

// The timers end in check(). An execution that is cut short leaves them: its thread is in a round for ever, so that its end
// would never come.
template <class D, class Locking>
struct Scenarios {
  using Owned = timer::OwnedTimer<D, Locking>;

  // A timer's function uses it; one thread ends both while another is in its rounds.
  struct Used {
    D driver;
    SimAtomics::var<int> memory{1};
    void use() { SIM_CHECK(memory.load() == 1); }
    void end(Execution& run, Owned& timer, std::initializer_list<int> rounds) {
      driver.round(0);
      run.spawn([&] {
        for (const int round : rounds) driver.round(round);
      });
      run.spawn([&] {
        timer.reset();
        memory.store(2);
      });
      run.check([&] {
        SIM_CHECK(!timer);
        driver.round(100);
        delete &timer;
      });
    }
  };
  static void end_while_it_fires(Execution& run) {
    Used used;
    Owned& timer = *new Owned(used.driver, [&] { used.use(); });
    timer.set(at(5));
    used.end(run, timer, {5});
  }
  static void end_of_a_periodic_one(Execution& run) {
    Used used;
    Owned& timer = *new Owned(used.driver, [&] { used.use(); });
    timer.every(at(5), kPeriod);
    used.end(run, timer, {5, 15});
  }
  // The function uses the object, which another thread ends at the same time: it is called no more, however often it has set
  // itself.
  static void end_while_it_sets_itself(Execution& run) {
    Used used;
    Owned& timer = *new Owned();
    timer = Owned(used.driver, [&] {
      used.use();
      timer.set(at(5));
    });
    timer.set(at(5));
    used.end(run, timer, {5});
  }

  // One thread changes a periodic timer while another is in its round; then `check(driver, timer, calls)`.
  static void change(Execution& run, auto change, auto check) {
    D driver;
    int calls = 0;
    Owned& timer = *new Owned(driver, [&] { ++calls; });
    timer.every(at(5), kPeriod);
    driver.round(0);
    run.spawn([&] { driver.round(5); });
    run.spawn([&] { change(timer); });
    run.check([&] {
      check(driver, timer, calls);
      delete &timer;
    });
  }
  static void cancel_of_a_periodic_one(Execution& run) {
    change(
        run, [](Owned& timer) { timer.cancel(); },
        [](D& driver, Owned& timer, const int& calls) {
          const int before = calls;
          SIM_CHECK(before <= 1 && !timer.is_armed());
          driver.round(100);
          SIM_CHECK(calls == before);
        });
  }
  static void set_of_a_periodic_one(Execution& run) {
    change(
        run, [](Owned& timer) { timer.set(at(50)); },
        [](D& driver, Owned& timer, const int& calls) {
          const int before = calls;
          SIM_CHECK(timer.expiry() == at(50));
          driver.round(49);
          SIM_CHECK(calls == before);
          driver.round(50);
          driver.round(100);
          SIM_CHECK(calls == before + 1);
        });
  }
  // The time of the new period counts, although a call of the old one is under way.
  static void other_period(Execution& run) {
    change(
        run, [](Owned& timer) { timer.every(at(30), std::chrono::nanoseconds(40)); },
        [](D& driver, Owned& timer, const int& calls) {
          SIM_CHECK(timer.expiry() == at(30));
          const int before = calls;
          driver.round(30);
          SIM_CHECK(calls == before + 1 && timer.expiry() == at(70));
        });
  }

  inline static const sim::Scenarios kAll = {
      {{.name = "end while it fires", .preemptions = 2, .stale = 1}, end_while_it_fires},
      {{.name = "end of a periodic one", .preemptions = 2, .stale = 1}, end_of_a_periodic_one},
      {{.name = "end while it sets itself", .preemptions = 2, .stale = 1}, end_while_it_sets_itself},
      {{.name = "cancel of a periodic one", .preemptions = 2, .stale = 1}, cancel_of_a_periodic_one},
      {{.name = "set of a periodic one", .preemptions = 2, .stale = 1}, set_of_a_periodic_one},
      {{.name = "other period", .preemptions = 2, .stale = 1}, other_period},
  };
};

TEST(OwnedTimer_Model, EndCancelAndSetAgainstARound_NothingTooLate) {
  sim::expect_all_ok("owned timer", Scenarios<SimDriver<>, SimAnyThread>::kAll);
}

template <class D, class Locking>
bool is_noticed() {
  return sim::first_failure("owned timer", Scenarios<D, Locking>::kAll, 2) != Failure::kNone;
}
struct NoLock : SimAnyThread {
  using Mutex = timer::NoMutex;
};

TEST(OwnedTimer_Mutants, EachPartLeftOut_IsNoticed) {
  EXPECT_TRUE((is_noticed<SimDriver<false>, SimAnyThread>())) << "the end does not wait for the callback";
  EXPECT_TRUE((is_noticed<SimDriver<>, NoLock>())) << "no lock";
  EXPECT_TRUE((is_noticed<SimDriver<true, false>, SimAnyThread>())) << "does not ask whether it is armed";
}

}  // namespace
}  // namespace freehold
