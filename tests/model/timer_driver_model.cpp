// SPDX-License-Identifier: MIT
// The driver of timers on the simulated machine: its sleep, and waiting for a callback's end. Oracle: no thread sleeps for
// ever, and what a callback uses may go once it is quiet, else there is a race on plain data.
#include <gtest/gtest.h>

#include <string>

#include "freehold/timer/driver.hpp"
#include "tests/model/mutants.hpp"
#include "tests/model/timer_ledger.hpp"

namespace freehold::model {
namespace {

using sim::Execution;
using sim::Failure;
using sim::Result;
using sim::SimAtomics;

// It is the sixth nanosecond, and time does not pass: who is not woken sleeps for ever, which is a deadlock.
template <class A>
struct SleepOn {
  static void wait_until(const typename A::template atomic<std::uint32_t>& word, std::uint32_t old,
                         std::optional<TimePoint> until) {
    if (!until || *until > at(6)) A::wait(word, old);
  }
};

// `in_place`: the owner finds the timer where it was, and is not told.
template <class A, class Orders>
Result earlier_time_wakes(const sim::Options& options, bool in_place) {
  return sim::explore(options, [=](Execution& run) {
    using Ledger = model::Ledger<A, timer::WheelOrders>;
    Ledger ledger;
    typename Ledger::Timer timer;
    timer::Alarm<A, SleepOn<A>, Orders> alarm;
    ledger.create_armed(timer, in_place ? 5 : 1000);
    if (in_place) ledger.set(timer, 1000);
    run.spawn([&] {
      while (timer.called == 0) {  // no other thread writes it
        const std::uint32_t looked = alarm.look();
        ledger.advance(in_place ? 4 : 6);
        if (timer.called == 0) alarm.sleep(ledger.wheel(), looked);
        if (in_place) ledger.advance(6);
      }
    });
    run.spawn([&] {
      ledger.set(timer, 6);
      alarm.wake_for(at(6));
    });
    run.check([&] { SIM_CHECK(timer.called == 1); });
  });
}

template <class A, class Orders>
Result stop_wakes(const sim::Options& options) {
  return sim::explore(options, [](Execution& run) {
    model::Ledger<A, timer::WheelOrders> ledger;
    timer::Alarm<A, SleepOn<A>, Orders> alarm;
    typename A::template atomic<std::uint32_t> stopped{0};
    run.spawn([&] {
      for (;;) {
        const std::uint32_t looked = alarm.look();
        if (stopped.load(std::memory_order_relaxed) != 0) return;
        alarm.sleep(ledger.wheel(), looked);
      }
    });
    run.spawn([&] {
      stopped.store(1, std::memory_order_relaxed);
      alarm.wake();
    });
    run.check([] {});
  });
}

template <class A, class Orders>
Failure sleeper(bool print) {
  for (const bool in_place : {false, true}) {
    const Result woken = earlier_time_wakes<A, Orders>(
        {.name = in_place ? "timer/alarm, in place" : "timer/alarm", .preemptions = 3, .stale = 1, .print = print},
        in_place);
    if (!woken.ok()) return woken.failure;
  }
  const Result stopped = stop_wakes<A, Orders>({.name = "timer/alarm, stop", .preemptions = 3, .stale = 1, .print = print});
  return stopped.ok() ? Failure::kNone : stopped.failure;
}

FREEHOLD_WEAKER(NoFence, timer::AlarmOrders, kFence, acq_rel);
FREEHOLD_WEAKER(RelaxedWakeLook, timer::AlarmOrders, kLook, relaxed);
FREEHOLD_WEAKER(RelaxedWake, timer::AlarmOrders, kWake, relaxed);
struct NobodyIsWoken : SimAtomics {
  static void notify_one(atomic<std::uint32_t>&) noexcept {}
};

TEST(Alarm_Model, EarlierTimeOrStop_NoSleeperIsLeft) {
  EXPECT_EQ((sleeper<SimAtomics, timer::AlarmOrders>(true)), Failure::kNone);
}
TEST(Alarm_Mutants, EachOrderWeakenedNobodyWoken_Deadlock) {
  EXPECT_EQ((sleeper<SimAtomics, NoFence>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<SimAtomics, RelaxedWakeLook>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<SimAtomics, RelaxedWake>(false)), Failure::kDeadlock);
  EXPECT_EQ((sleeper<NobodyIsWoken, timer::AlarmOrders>(false)), Failure::kDeadlock);
}

// After cancel() or destroy() and quiesce(), nothing of the callback races with who takes its context away.
template <class A, class Orders>
Result context_goes(const sim::Options& options, bool destroy) {
  return sim::explore(options, [=](Execution& run) {
    using Ledger = model::Ledger<A, timer::WheelOrders>;
    Ledger ledger;
    typename Ledger::Timer timer;
    timer::Rounds<A, Orders> rounds;
    ledger.create_armed(timer, 5);
    run.spawn([&] {
      for (const int now : {5, 6}) {
        rounds.begin();
        ledger.advance(now);
        rounds.end();
      }
    });
    run.spawn([&] {
      destroy ? ledger.destroy(timer) : ledger.cancel(timer);
      rounds.quiesce();
      timer.note.store(-1);
    });
    run.check([] {});
  });
}
template <class A, class Orders>
Failure quiescence(bool print) {
  for (const bool destroy : {false, true}) {
    const Result result = context_goes<A, Orders>({.name = destroy ? "timer/quiesce destroyed" : "timer/quiesce cancelled",
                                                   .preemptions = 4,
                                                   .stale = 2,
                                                   .print = print},
                                                  destroy);
    if (!result.ok()) return result.failure;
  }
  return Failure::kNone;
}

// A thread that waits for a round to pass finds that the owner saw what was written before; no thread waits for ever. The
// owner's second round waits until it is asked for; with one round it ends while the other thread may not have begun.
template <class A, class Orders>
Result round_passes(const sim::Options& options, std::uint32_t rounds_in_all) {
  return sim::explore(options, [=](Execution& run) {
    timer::Rounds<A, Orders> rounds;
    typename A::template atomic<std::uint32_t> asked{0}, wakes{0};
    typename A::template atomic<std::uint32_t> seen{0};
    run.spawn([&] {
      for (std::uint32_t round = 0; round < rounds_in_all; ++round) {
        while (wakes.load(std::memory_order_acquire) < round) A::wait(wakes, round - 1);
        rounds.begin();
        seen.store(asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
        rounds.end();
      }
      rounds.finish();
    });
    run.spawn([&] {
      asked.store(1, std::memory_order_relaxed);
      const bool passed = rounds.pass([&] {
        wakes.fetch_add(1, std::memory_order_release);
        A::notify_one(wakes);
      });
      if (passed) SIM_CHECK(seen.load(std::memory_order_relaxed) == 1);
    });
    run.check([] {});
  });
}
template <class A, class Orders>
Failure passing(bool print) {
  for (const std::uint32_t rounds : {1U, 2U}) {
    const Result result = round_passes<A, Orders>(
        {.name = "timer/round passes of " + std::to_string(rounds), .preemptions = 4, .stale = 2, .print = print}, rounds);
    if (!result.ok()) return result.failure;
  }
  return Failure::kNone;
}

FREEHOLD_WEAKER(RelaxedRoundLook, timer::RoundsOrders, kLook, relaxed);
FREEHOLD_WEAKER(RelaxedEnd, timer::RoundsOrders, kEnd, relaxed);
FREEHOLD_WEAKER(NoBeginFence, timer::RoundsOrders, kBegin, acq_rel);
FREEHOLD_WEAKER(NoRoundFence, timer::RoundsOrders, kFence, acq_rel);

TEST(Rounds_Model, CancelledOrDestroyedAndQuiet_TheContextMayGo) {
  EXPECT_EQ((quiescence<SimAtomics, timer::RoundsOrders>(true)), Failure::kNone);
}
TEST(Rounds_Mutants, EachOrderWeakened_RaceOrDeadlock) {
  EXPECT_EQ((quiescence<SimAtomics, RelaxedRoundLook>(false)), Failure::kRace);
  EXPECT_EQ((quiescence<SimAtomics, RelaxedEnd>(false)), Failure::kRace);
  EXPECT_EQ((quiescence<SimAtomics, NoRoundFence>(false)), Failure::kDeadlock);
}
TEST(Rounds_Model, RoundAwaited_OwnerSawWhatCameBefore) {
  EXPECT_EQ((passing<SimAtomics, timer::RoundsOrders>(true)), Failure::kNone);
}
TEST(Rounds_Mutants, RoundAwaitedWithOrderWeakened_RaceOrDeadlock) {
  EXPECT_EQ((passing<SimAtomics, RelaxedRoundLook>(false)), Failure::kDeadlock);
  EXPECT_EQ((passing<SimAtomics, RelaxedEnd>(false)), Failure::kCheck);
  EXPECT_EQ((passing<SimAtomics, NoBeginFence>(false)), Failure::kCheck);
  EXPECT_EQ((passing<SimAtomics, NoRoundFence>(false)), Failure::kDeadlock);
}

}  // namespace
}  // namespace freehold::model
