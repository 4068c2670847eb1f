// SPDX-License-Identifier: MIT
// The objects of a task table alone: words that are handed over, and everybody who sleeps (clients without an entry, workers
// without a task, the supervisor). Mutants: every order weakened.
#include <gtest/gtest.h>

#include <optional>

#include "tests/model/mutants.hpp"
#include "tests/model/task_table_world.hpp"

namespace freehold::process {
namespace {

using sim::expect_ok;
using sim::Result;
using sim::SimAtomics;

// Two clients use one entry in turn, and a worker runs their tasks: input and output are free of races.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result handed_over() {
  return sim::explore({.name = "table/words", .preemptions = 2, .stale = 1, .print = false}, [](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    TaskEntries<A, Orders> entries(w.table.layout());
    const auto sleep_while = [&](TaskWord seen) { A::wait_shared(entries[0].state, seen.bits(), sync::kForever); };
    const auto client = [&](std::uint64_t input) {
      std::optional<Ticket> ticket;
      for (TaskWord seen; !ticket;) {
        seen = entries.word(0);
        ticket = entries.take(0, 0);
        if (!ticket && seen.state() != TaskState::kFree) sleep_while(seen);
      }
      entries[0].fill(input, {});
      SIM_CHECK(entries.submit(*ticket, 0));
      entries.wake(0);
      while (!entries.take_result(*ticket)) entries.wait(*ticket);
      SIM_CHECK(entries[0].output_bytes.load() == input + 1);
      SIM_CHECK(entries.free(0, *entries.look(*ticket)));
      entries.wake(0);
    };
    run.spawn([&] { client(10); });
    run.spawn([&] { client(20); });
    run.spawn([&] {
      for (int done = 0; done < 2;) {
        const TaskWord seen = entries.word(0);
        const std::optional<Claim> claim = entries.claim(0, 0);
        if (!claim && seen.state() != TaskState::kReady) sleep_while(seen);
        if (!claim) continue;
        entries[0].output_bytes.store(entries[0].input_bytes.load() + 1);
        SIM_CHECK(entries.end_run(*claim, [](TaskWord word) { return word.with(TaskState::kDone).without_flags(); }));
        entries.wake(0);
        ++done;
      }
    });
    run.check([&] { SIM_CHECK(entries.count(TaskState::kFree) == 1); });
  });
}
TEST(TaskTable_Model, Words_TwoClientsAndAWorker_DataIsHandedOver) { expect_ok(handed_over()); }

// A worker sleeps until there is a task.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result work_comes() {
  return sim::explore({.name = "table/work", .preemptions = 3, .stale = 1, .print = false}, [](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    const Ticket ticket = *w.table.try_acquire(0);
    run.spawn([&] { w.table.submit(ticket, 0, 1, {.priority = Priority::kLow}); });
    run.spawn([&] {
      while (!w.table.try_claim(0)) w.table.wait_for_work(0);
    });
    run.check([&] { SIM_CHECK(w.count(TaskState::kRunning) == 1); });
  });
}
TEST(TaskTable_Model, WorkerSleeps_ATaskWakesIt) { expect_ok(work_comes()); }

// The supervisor takes a free entry for a moment, to give its pages back, and a client may wait for it.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result space_comes() {
  return sim::explore({.name = "table/purge", .preemptions = 3, .stale = 1, .print = false}, [](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    run.spawn([&] {
      std::optional<Ticket> ticket;
      while (!(ticket = w.table.try_acquire(0))) w.table.wait_for_space();
      w.table.pass_on_space();
      SIM_CHECK(w.table.drop(*ticket));
    });
    run.spawn([&] {
      const std::optional<Ticket> ticket = w.table.try_acquire_entry(0, TaskWord::kPurger);
      if (ticket) SIM_CHECK(w.table.drop(*ticket));
    });
    run.check([&] {
      SIM_CHECK(w.count(TaskState::kFree) == 1);
      w.supervision.check_invariants();
    });
  });
}
TEST(TaskTable_Model, EntryIsPurged_ClientGetsIt) { expect_ok(space_comes()); }

// A supervisor sleeps until it is notified of a task: of one that finds no worker asleep; or, while it rests, of the next
// one, even if it was notified of another before, which has already finished.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result supervisor_called(bool rests) {
  const sim::Options options{.name = rests ? "table/rest" : "table/call", .preemptions = 3, .stale = 1, .print = false};
  return sim::explore(options, [rests](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    SimAtomics::atomic<std::uint32_t> notified{0};  // the wakeup; natively an eventfd
    run.spawn([&] {
      const std::optional<Ticket> ticket = w.table.try_acquire(0);
      if (w.table.submit(*ticket, 0, 1) != Submitted::kNotifySupervisor) return;
      notified.store(1);
      SimAtomics::notify_all(notified);
    });
    if (rests) run.spawn([&] { static_cast<void>(w.table.try_claim(0)); });
    run.spawn([&] {
      const bool sleeps =
          rests ? w.supervision.prepare_idle([](std::uint32_t, TaskWord) { return true; }) : !w.supervision.request_notify();
      while (sleeps && notified.load() == 0) SimAtomics::wait(notified, 0);
      if (rests)
        SIM_CHECK(w.count(TaskState::kFree) == 0 && w.count(TaskState::kFilling) == 0);
      else
        SIM_CHECK(w.table.try_claim(0));
    });
    run.check([] {});
  });
}
TEST(TaskTable_Model, TaskWithoutWorkers_SupervisorIsCalled) { expect_ok(supervisor_called(false)); }
TEST(TaskTable_Model, TaskWhileTheSupervisorRests_SupervisorIsCalled) { expect_ok(supervisor_called(true)); }

// A worker that its supervisor has just started when that dies: the next one knows of it, or it does not begin.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result taking_over() {
  return sim::explore({.name = "table/take over", .preemptions = 3, .stale = 2, .print = false}, [](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    WorkerLives<A, Orders> lives(w.table.layout());
    SIM_CHECK(lives.new_epoch() == 1);
    bool enters = false, known = false;
    run.spawn([&] { enters = lives.enter(0, 77, 1); });
    run.spawn([&] {
      lives.new_epoch();
      known = lives.identity(0) == 77;
    });
    run.check([&] { SIM_CHECK(known || !enters); });
  });
}
TEST(TaskTable_Model, SupervisorTakesOver_NoWorkerUnknown) { expect_ok(taking_over()); }

// A sleeping worker is told that there will be no more.
template <class A = SimAtomics, class Orders = TaskTableOrders>
Result closing() {
  return sim::explore({.name = "table/close", .preemptions = 3, .stale = 2, .print = false}, [](sim::Execution& run) {
    World<A, Orders> w(kOneOfEach);
    SleepingWorkers<A, Orders> sleepers(w.table.layout());
    run.spawn([&] {
      while (!sleepers.closed()) sleepers.wait(0, sync::kForever, [] { return false; });
    });
    run.spawn([&] { sleepers.close(); });
    run.check([] {});
  });
}
TEST(TaskTable_Model, Closed_SleepingWorkerEnds) { expect_ok(closing()); }

// Mutants of the orders: each one step weaker, and the scenarios that notice it.
FREEHOLD_WEAKER(WeakAcquire, TaskTableOrders, kAcquire, relaxed);
FREEHOLD_WEAKER(WeakRelease, TaskTableOrders, kRelease, relaxed);
FREEHOLD_WEAKER(WeakSetBit, TaskTableOrders, kSetBit, acq_rel);
FREEHOLD_WEAKER(WeakReadSleepers, TaskTableOrders, kReadSleepers, acquire);
FREEHOLD_WEAKER(WeakSetSleeping, TaskTableOrders, kSetSleeping, release);
FREEHOLD_WEAKER(WeakRecheck, TaskTableOrders, kRecheck, acquire);
FREEHOLD_WEAKER(WeakClearBit, TaskTableOrders, kClearBit, relaxed);
FREEHOLD_WEAKER(WeakReadWakes, TaskTableOrders, kReadWakes, relaxed);
FREEHOLD_WEAKER(WeakAddWake, TaskTableOrders, kAddWake, relaxed);
TEST(TaskTable_Mutants, WeakWords_Race) {
  EXPECT_EQ((handed_over<SimAtomics, WeakAcquire>().failure), sim::Failure::kRace);
  EXPECT_EQ((handed_over<SimAtomics, WeakRelease>().failure), sim::Failure::kRace);
}
template <class Orders>
class TaskTable_WeakSleep : public testing::Test {};
using EachWeaker = testing::Types<WeakSetBit, WeakReadSleepers, WeakSetSleeping, WeakRecheck>;
TYPED_TEST_SUITE(TaskTable_WeakSleep, EachWeaker);
TYPED_TEST(TaskTable_WeakSleep, Mutant_Deadlock) {
  EXPECT_EQ((work_comes<SimAtomics, TypeParam>().failure), sim::Failure::kDeadlock);
  EXPECT_EQ((space_comes<SimAtomics, TypeParam>().failure), sim::Failure::kDeadlock);
  EXPECT_EQ((supervisor_called<SimAtomics, TypeParam>(false).failure), sim::Failure::kDeadlock);
  EXPECT_EQ((taking_over<SimAtomics, TypeParam>().failure), sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, WeakClearedBit_Lost) {
  EXPECT_EQ((work_comes<SimAtomics, WeakClearBit>().failure), sim::Failure::kDeadlock);
}
TEST(TaskTable_Mutants, WeakWakes_Deadlock) {
  EXPECT_EQ((closing<SimAtomics, WeakReadWakes>().failure), sim::Failure::kDeadlock);
  EXPECT_EQ((closing<SimAtomics, WeakAddWake>().failure), sim::Failure::kDeadlock);
}

}  // namespace
}  // namespace freehold::process
