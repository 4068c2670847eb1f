// SPDX-License-Identifier: MIT
// Limits and delays of a task table: no task takes another one's time for its own, and none begins before its time,
// whichever worker dies.
#include <gtest/gtest.h>

#include <optional>

#include "tests/model/task_table_world.hpp"

namespace freehold::process {
namespace {

using sim::expect_ok;
using sim::Result;
using sim::SimAtomics;

// A supervisor that looks at the clock while workers take, begin, finish and die: only a task that has begun is ever
// overdue, and only by its own time. Two tasks use one entry in turn, and each may go to a second worker.
template <class A = SimAtomics>
Result timed(bool worker_dies) {
  const sim::Options options{.name = worker_dies ? "table/timed, worker dies" : "table/timed",
                             .preemptions = worker_dies ? 1u : 2u,
                             .stale = worker_dies ? 0u : 1u,
                             .crashes = worker_dies ? 1u : 0u,
                             .mortal = 1};
  return sim::explore(options, [](sim::Execution& run) {
    constexpr std::uint64_t kLimit = 5;
    World<A> w;
    SimAtomics::atomic<std::uint64_t> clock{1};
    std::uint64_t begun[2][2] = {};  // by task and attempt
    const auto work = [&](unsigned slot) {
      while (!w.table.closed()) {
        const std::optional<Claim> claim = w.table.try_claim(slot);
        if (!claim) {
          w.table.wait_for_work(slot);
          continue;
        }
        const std::uint64_t time = clock.load();
        begun[claim->word.generation() - 1][claim->word.attempt()] = time;
        w.table.entries()[0].began(time);
        if (!w.table.complete(*claim, 0)) return;
      }
    };
    run.spawn([&] { work(0); });
    run.spawn([&] {
      for (unsigned task = 0; task < 2; ++task) {
        const std::optional<Ticket> ticket = w.table.try_acquire(0);
        SIM_CHECK(w.table.submit(*ticket, 0, 1, {.limit = kLimit}) != Submitted::kNo);
        w.wait_and_take(*ticket);
        w.table.drop(*ticket);
      }
      w.supervision.close();
    });
    run.spawn([&] {
      for (std::uint64_t time : {std::uint64_t{4}, std::uint64_t{8}}) {
        clock.store(time);
        if (sim::is_dead(0)) break;
        const std::optional<Claim> claim = w.supervision.find_overdue(time);
        if (!claim) continue;
        const std::uint64_t since = begun[claim->word.generation() - 1][claim->word.attempt()];
        SIM_CHECK(since != 0 && time - since > kLimit);
        break;
      }
      sim::await_end(0, 1);
      w.supervision.recover_worker(0, {FailureKind::kDeadline, 5}, 2);
      clock.store(12);
      const std::optional<Claim> next = w.table.try_claim(1);
      SIM_CHECK(!w.supervision.find_overdue(12));
      if (next) SIM_CHECK(w.table.complete(*next, 0));
      work(1);
    });
    run.check([] {});
  });
}
TEST(TaskTable_Model, TwoTasksInTurn_OnlyWhatHasBegunIsOverdue) { expect_ok(timed(false)); }
TEST(TaskTable_Model, WorkerDies_TheNextOnesTimeIsItsOwn) { expect_ok(timed(true)); }

// A component refuses its task, which has to wait for its next run; its worker may die at any step while the supervisor
// looks at clock and times. The task is neither lost nor begun before its time, and takes no other run's time for its own.
template <class A = SimAtomics>
Result refused(bool worker_dies) {
  const sim::Options options{.name = worker_dies ? "table/refused, worker dies" : "table/refused",
                             .preemptions = 2,
                             .stale = 1,
                             .crashes = worker_dies ? 1u : 0u,
                             .mortal = 1};
  return sim::explore(options, [](sim::Execution& run) {
    constexpr std::uint64_t kDue = 1'000'010;
    World<A> w;
    const Ticket ticket = w.submitted({.limit = 5, .retry = {.codes = {7}, .attempts = 3, .delay_ms = 1}});
    run.spawn([&] {
      const std::optional<Claim> claim = w.table.try_claim(0);
      w.table.entries()[0].began(10);
      SIM_CHECK(w.table.retry(*claim, 7, 10) == TaskTable<A>::Retried::kYes);
    });
    run.spawn([&] {
      w.wait_and_take(ticket);
      SIM_CHECK(w.table.entries()[0].failure.load().kind == FailureKind::kNone);
      SIM_CHECK(w.table.drop(ticket));
    });
    run.spawn([&] {
      SIM_CHECK(!w.supervision.prepare_idle([](std::uint32_t, TaskWord) { return false; }));
      SIM_CHECK(!w.supervision.find_overdue(12));
      w.supervision.begin_due(12);
      sim::await_end(0, 1);
      if (sim::is_dead(0)) w.supervision.recover_worker(0, kKilledBy9, 3);
      std::optional<Claim> claim = w.table.try_claim(1);
      SIM_CHECK(!claim || sim::is_dead(0));
      if (!claim) {
        w.supervision.begin_due(kDue);
        claim = w.table.try_claim(1);
      }
      SIM_CHECK(claim && !w.supervision.find_overdue(2 * kDue));
      SIM_CHECK(w.table.complete(*claim, 3));
    });
    run.check([&] {
      SIM_CHECK(w.count(TaskState::kFree) == 1);
      w.supervision.check_invariants();
    });
  });
}
TEST(TaskTable_Model, ComponentRefuses_RunsAgainInTime) { expect_ok(refused(false)); }
TEST(TaskTable_Model, ComponentRefusesAndWorkerDies_RunsAgain) { expect_ok(refused(true)); }

// Mutants: the time of the entry's former task, or of the former attempt, stays.
template <unsigned kThread>
struct TimeKeptBy : SimAtomics {
  template <class T>
  struct atomic : sim::atomic<T> {
    using sim::atomic<T>::atomic;
    void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
      if (value != T{0} || sim::thread_index() != kThread) sim::atomic<T>::store(value, order);
    }
  };
};
// A worker gives its task back, and no process notes until when.
struct DueForgotten : SimAtomics {
  template <class T>
  struct atomic : sim::atomic<T> {
    using sim::atomic<T>::atomic;
    void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
      if (sim::thread_index() != 0 || value < static_cast<T>(1'000'000)) sim::atomic<T>::store(value, order);
    }
  };
};
TEST(TaskTable_Mutants, TimeOfAnotherRunStays_Noticed) {
  EXPECT_EQ(timed<TimeKeptBy<1>>(false).failure, sim::Failure::kCheck);
  EXPECT_EQ(timed<TimeKeptBy<2>>(true).failure, sim::Failure::kCheck);
  EXPECT_EQ(refused<TimeKeptBy<0>>(false).failure, sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, DelayForgotten_BegunTooEarly) {
  EXPECT_EQ(refused<DueForgotten>(false).failure, sim::Failure::kCheck);
}

}  // namespace
}  // namespace freehold::process
