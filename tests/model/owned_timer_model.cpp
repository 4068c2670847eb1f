// SPDX-License-Identifier: MIT
// OwnedTimer beside a driver's thread, under every interleaving within the bounds: its end, its cancel and its set against
// the round in which it is called. The oracle: what the function uses may go when the timer has ended (a race on plain data
// else); a periodic timer that was cancelled is called no more, and one that was set otherwise is called once for that. Each
// part of it that is left out is noticed.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "freehold/timer/driver.hpp"
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/timer_wheel.hpp"
#include "sim/sim_atomics.hpp"
#include "tests/model/expect_ok.hpp"

namespace freehold {
namespace {

using sim::Execution;
using sim::Failure;
using sim::Options;
using sim::Result;
using sim::SimAtomics;
using timer::TimePoint;
using timer::TimerId;

constexpr TimePoint at(int nanoseconds) {
  return TimePoint(std::chrono::hours(1000)) + std::chrono::nanoseconds(nanoseconds);
}
constexpr std::chrono::nanoseconds kPeriod{10};
using SimAnyThread = timer::AnyThreadOn<SimAtomics>;

// What OwnedTimer needs of a driver, without the thread: its rounds are called by the scenario.
template <bool kWaits = true, bool kAnswers = true>
class SimDriver {
 public:
  SimDriver() { wheel_.advance(at(0)); }
  [[nodiscard]] TimerId create(timer::Callback callback, void* context) noexcept { return wheel_.create(callback, context); }
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

// The timers end in check(). An execution that is cut short leaves them: its thread is in a round for ever, so that nobody
// could wait for its end.
template <class D, class Locking>
struct Scenarios {
  using Owned = timer::OwnedTimer<D, Locking>;

  static void end_while_it_fires(Execution& run) {
    D driver;
    SimAtomics::var<int> memory{1};
    Owned& timer = *new Owned(driver, [&] { SIM_CHECK(memory.load() == 1); });
    timer.set(at(5));
    driver.round(0);
    run.spawn([&] { driver.round(5); });
    run.spawn([&] {
      timer.reset();
      memory.store(2);
    });
    run.check([&] {
      driver.round(100);
      delete &timer;
    });
  }
  static void end_of_a_periodic_one(Execution& run) {
    D driver;
    SimAtomics::var<int> memory{1};
    Owned& timer = *new Owned(driver, [&] { SIM_CHECK(memory.load() == 1); });
    timer.every(at(5), kPeriod);
    driver.round(0);
    run.spawn([&] {
      driver.round(5);
      driver.round(15);
    });
    run.spawn([&] {
      timer.reset();
      memory.store(2);
    });
    run.check([&] {
      driver.round(100);
      delete &timer;
    });
  }
  static void cancel_of_a_periodic_one(Execution& run) {
    D driver;
    int calls = 0;
    Owned& timer = *new Owned(driver, [&] { ++calls; });
    timer.every(at(5), kPeriod);
    driver.round(0);
    run.spawn([&] { driver.round(5); });
    run.spawn([&] { timer.cancel(); });
    run.check([&] {
      const int before = calls;
      SIM_CHECK(before <= 1 && !timer.is_armed());
      driver.round(100);
      SIM_CHECK(calls == before);
      delete &timer;
    });
  }
  static void set_of_a_periodic_one(Execution& run) {
    D driver;
    int calls = 0;
    Owned& timer = *new Owned(driver, [&] { ++calls; });
    timer.every(at(5), kPeriod);
    driver.round(0);
    run.spawn([&] { driver.round(5); });
    run.spawn([&] { timer.set(at(50)); });
    run.check([&] {
      const int before = calls;
      SIM_CHECK(timer.expiry() == at(50));
      driver.round(49);
      SIM_CHECK(calls == before);
      driver.round(50);
      driver.round(100);
      SIM_CHECK(calls == before + 1);
      delete &timer;
    });
  }
  // The time of the new period counts, although a call of the old one is under way.
  static void other_period(Execution& run) {
    D driver;
    int calls = 0;
    Owned& timer = *new Owned(driver, [&] { ++calls; });
    timer.every(at(5), kPeriod);
    driver.round(0);
    run.spawn([&] { driver.round(5); });
    run.spawn([&] { timer.every(at(30), std::chrono::nanoseconds(40)); });
    run.check([&] {
      SIM_CHECK(timer.expiry() == at(30));
      const int before = calls;
      driver.round(30);
      SIM_CHECK(calls == before + 1 && timer.expiry() == at(70));
      delete &timer;
    });
  }

  struct Named {
    const char* name;
    void (*scenario)(Execution&);
  };
  static constexpr Named kAll[] = {{"end while it fires", end_while_it_fires},
                                   {"end of a periodic one", end_of_a_periodic_one},
                                   {"cancel of a periodic one", cancel_of_a_periodic_one},
                                   {"set of a periodic one", set_of_a_periodic_one},
                                   {"other period", other_period}};
};

TEST(OwnedTimer_Model, EndCancelAndSetAgainstARound_NothingTooLate) {
  for (const auto& named : Scenarios<SimDriver<>, SimAnyThread>::kAll) {
    expect_ok(
        sim::explore({.name = std::string("owned timer/") + named.name, .preemptions = 2, .stale = 1}, named.scenario));
  }
}

template <class D, class Locking>
std::string killed_by() {
  for (const auto& named : Scenarios<D, Locking>::kAll) {
    const Result result =
        sim::explore({.name = std::string("owned timer mutant/") + named.name, .preemptions = 2, .stale = 1, .print = false},
                     named.scenario);
    if (result.failure != Failure::kNone) return named.name;
  }
  return "";
}
struct NoLock : SimAnyThread {
  using Mutex = timer::NoMutex;
};

TEST(OwnedTimer_Mutants, EachPartLeftOut_IsNoticed) {
  EXPECT_NE((killed_by<SimDriver<false>, SimAnyThread>()), "") << "the end does not wait for the callback";
  EXPECT_NE((killed_by<SimDriver<>, NoLock>()), "") << "no lock";
  EXPECT_EQ((killed_by<SimDriver<true, false>, SimAnyThread>()), "set of a periodic one")
      << "does not ask whether it is armed";
}

}  // namespace
}  // namespace freehold
