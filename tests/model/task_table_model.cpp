// SPDX-License-Identifier: MIT
// The task table with clients, workers and supervisors, any of which may stop for ever at any step. The oracle: every
// process that lives gets every result once and the right one, none sleeps for ever, the buffers are free of races, and at
// the end every entry is free. Mutants: every step of the protocol that a crash needs.
#include <gtest/gtest.h>

#include <optional>

#include "tests/model/mutants.hpp"
#include "tests/model/task_table_world.hpp"

namespace freehold::process {
namespace {

using sim::expect_ok;
using sim::Result;
using sim::SimAtomics;

constexpr std::uint64_t kAnswer = 1000;  // what a worker adds to the input, which is the number of bytes

struct Cast {
  unsigned clients = 1, tasks = 1;  // threads, and tasks of each
  unsigned entries = 1;
  bool supervisor_dies = false;
};

// Everything that runs. Threads in this order: clients, the worker, the spare worker that begins when the worker ends badly,
// the supervisor, the one that takes over from it.
template <class A>
struct Play : World<A> {
  using World<A>::table, World<A>::supervision;

  explicit Play(const Cast& cast)
      : World<A>({.entries = cast.entries, .workers = 2, .clients = 2, .max_input = 64, .max_output = 64}), cast_(cast) {}

  [[nodiscard]] unsigned worker() const noexcept { return cast_.clients; }
  [[nodiscard]] unsigned supervisor() const noexcept { return cast_.clients + 2; }
  [[nodiscard]] std::uint32_t all_clients() const noexcept { return (1u << cast_.clients) - 1; }

  void client(unsigned c) {
    auto& entries = table.entries();
    for (unsigned task = 0; task < cast_.tasks; ++task) {
      std::optional<Ticket> ticket = table.try_acquire(c);
      if (!ticket) {
        while (!(ticket = table.try_acquire(c))) table.wait_for_space();
        table.pass_on_space();
      }
      const std::uint64_t input = 10 * c + task;
      SIM_CHECK(table.submit(*ticket, c, input) != Submitted::kNo);
      while (!entries.take_result(*ticket)) {
        SIM_CHECK(entries.look(*ticket).has_value());
        entries.wait(*ticket);
      }
      SIM_CHECK(entries[ticket->entry].failure.load().kind == FailureKind::kNone);
      SIM_CHECK(entries[ticket->entry].output_bytes.load() == input + kAnswer);
      SIM_CHECK(!entries.take_result(*ticket));
      SIM_CHECK(table.drop(*ticket));
      SIM_CHECK(!table.drop(*ticket));
      ++delivered[c];
    }
  }

  void work(unsigned slot) {
    for (;;) {
      if (const std::optional<Claim> claim = table.try_claim(slot)) {
        if (!table.complete(*claim, table.entries()[claim->entry].input_bytes.load() + kAnswer)) return;
      } else if (table.closed()) {
        return;
      } else {
        table.wait_for_work(slot);
      }
    }
  }
  void spare_worker() {
    sim::await_end(0, 1u << worker());
    if (sim::is_dead(worker())) work(1);
  }

  void supervise(std::uint32_t known) {
    while ((known & all_clients()) != all_clients()) known = recover_ended(known);
    supervision.close();
    // The worker may die yet, holding what the last client has abandoned.
    while ((known >> worker() & 1) == 0) known = recover_ended(known);
  }
  std::uint32_t recover_ended(std::uint32_t known) {
    const std::uint32_t ended = sim::await_end(known);
    for (unsigned c = 0; c < cast_.clients; ++c)
      if (((ended & ~known) >> c & 1) != 0 && sim::is_dead(c)) supervision.recover_client(c);
    if (((ended & ~known) >> worker() & 1) != 0 && sim::is_dead(worker())) supervision.recover_worker(0, kKilledBy9, 3);
    return ended;
  }
  void second_supervisor() {
    sim::await_end(0, 1u << supervisor());
    if (!sim::is_dead(supervisor())) return;
    supervision.sweep();
    supervise(0);  // everybody's end is news to it
  }

  void run(sim::Execution& run) {
    for (unsigned c = 0; c < cast_.clients; ++c) run.spawn([this, c] { client(c); });
    run.spawn([this] { work(0); });
    run.spawn([this] { spare_worker(); });
    run.spawn([this] { supervise(0); });
    if (cast_.supervisor_dies) run.spawn([this] { second_supervisor(); });
    run.check([this] {
      for (unsigned c = 0; c < cast_.clients; ++c) SIM_CHECK(delivered[c] == cast_.tasks || sim::is_dead(c));
      SIM_CHECK(this->count(TaskState::kFree) == cast_.entries);
      supervision.check_invariants();
    });
  }

  const Cast cast_;
  unsigned delivered[2] = {};
};

template <class A = SimAtomics>
Result play(const sim::Options& options, const Cast& cast) {
  return sim::explore(options, [&](sim::Execution& run) {
    Play<A> scene(cast);
    scene.run(run);
  });
}

constexpr std::uint32_t kClient = 0b0001, kWorker = 0b0010, kSupervisor = 0b1000;  // processes of a cast with one client

TEST(TaskTable_Model, OneTask_WorkerDies_DeliveredOnce) {
  expect_ok(play({.name = "table/worker", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = kWorker}, {}));
  expect_ok(play({.name = "table/worker, stale", .preemptions = 0, .stale = 1, .crashes = 1, .mortal = kWorker}, {}));
}
TEST(TaskTable_Model, OneTask_ClientDies_EntryFree) {
  expect_ok(play({.name = "table/client", .preemptions = 1, .crashes = 1, .mortal = kClient}, {}));
}
TEST(TaskTable_Model, OneTask_ClientAndWorkerDie_EntryFree) {
  expect_ok(play({.name = "table/both", .preemptions = 0, .stale = 0, .crashes = 2, .mortal = kClient | kWorker}, {}));
}
TEST(TaskTable_Model, OneTask_SupervisorDies_AnotherTakesOver) {
  const Cast cast{.supervisor_dies = true};
  expect_ok(play({.name = "table/supervisor", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = kSupervisor}, cast));
  const std::uint32_t both = kWorker | kSupervisor;
  expect_ok(play({.name = "table/two dead", .preemptions = 0, .stale = 0, .crashes = 2, .mortal = both}, cast));
}
TEST(TaskTable_Model, TwoClientsOneEntry_OneDies_TheOtherGetsIn) {
  expect_ok(play({.name = "table/space", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = 0b001}, {.clients = 2}));
}
TEST(TaskTable_Model, TwoTasksEach_Pct_AnybodyDies) {
  expect_ok(play({.name = "table/pct",
                  .strategy = sim::Strategy::kPct,
                  .stale = 2,
                  .crashes = 2,
                  .mortal = 0b010111,
                  .depth = 4,
                  .executions = 100'000},
                 {.clients = 2, .tasks = 2, .entries = 2, .supervisor_dies = true}));
}

// A client drops its task at any moment, or wants the worker dead, too; at the same time the worker finishes or is killed.
Result dropped(bool kills) {
  const sim::Options options{.name = kills ? "table/kill" : "table/drop", .preemptions = 3, .stale = kills ? 1u : 0u};
  return sim::explore(options, [kills](sim::Execution& run) {
    World w(kOneOfEach);
    const Ticket ticket = w.submitted();
    run.spawn([&] {
      const std::optional<Claim> claim = w.table.try_claim(0);
      if (claim && !w.table.complete(*claim, 2)) SIM_CHECK(kills);
    });
    run.spawn([&] {
      SIM_CHECK(kills ? w.table.kill(ticket) : w.table.drop(ticket));
      SIM_CHECK(!w.table.drop(ticket));
      if (const std::optional<Ticket> again = w.table.try_acquire(0)) {
        SIM_CHECK(w.table.submit(*again, 0, 1) != Submitted::kNo);
        SIM_CHECK(w.table.entries()[again->entry].limit.load() == 0);  // not the former task's
      }
    });
    if (kills)
      run.spawn([&] {
        const auto begun = [](const Claim&, std::uint64_t, std::uint64_t) { return std::uint64_t{1}; };
        const std::optional<Claim> late = w.supervision.find_overdue(5, begun);
        if (late) SIM_CHECK(late->word.generation() == ticket.generation);
        sim::await_end(0, 1);
        w.supervision.recover_worker(0, {FailureKind::kDeadline, 0}, 3);
      });
    run.check([&] {
      SIM_CHECK(w.count(TaskState::kRunning) + w.count(TaskState::kFilling) == 0);
      w.supervision.check_invariants();
    });
  });
}
TEST(TaskTable_Model, Dropped_WhileItRuns_EntryFreeOnce) { expect_ok(dropped(false)); }
TEST(TaskTable_Model, KilledByItsClient_EntryFreeOnce) { expect_ok(dropped(true)); }

template <bool kWaitsForTheEnd>
Result killed_late() {
  return sim::explore({.name = "table/killed late", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    World w;
    const Ticket ticket = w.submitted({.limit = 5});
    const std::optional<Claim> slow = w.table.try_claim(0);
    w.table.entries()[0].began(10);
    bool finished = false;
    run.spawn([&] { finished = w.table.complete(*slow, 2); });
    run.spawn([&] {
      SIM_CHECK(!w.supervision.find_overdue(15));
      if (!w.supervision.find_overdue(16)) return;
      if (kWaitsForTheEnd) sim::await_end(0);
      w.supervision.recover_worker(0, {FailureKind::kDeadline, 5}, 2);
      const std::optional<Claim> again = w.table.try_claim(1);
      SIM_CHECK(again && w.table.complete(*again, 3));
    });
    run.check([&] {
      SIM_CHECK(w.table.entries().take_result(ticket));
      SIM_CHECK(w.table.entries()[0].output_bytes.load() == (finished ? 2u : 3u));
    });
  });
}
TEST(TaskTable_Model, OverdueWorkerFinishesLate_TheOtherResultStands) { expect_ok(killed_late<true>()); }
TEST(TaskTable_Mutants, HandedOnBeforeTheFormerWorkerIsDead_Race) {
  EXPECT_EQ(killed_late<false>().failure, sim::Failure::kRace);
}

// A client that sleeps until any of its tasks ends; the worker may die before or after it ends the task. With one attempt
// the task fails, and the client is told all the same.
template <class A, class Orders = TaskTableOrders>
Result called_back(unsigned attempts = 2) {
  const sim::Options options{.name = attempts == 1 ? "table/fails" : "table/callback",
                             .preemptions = 2,
                             .stale = 1,
                             .crashes = 1,
                             .mortal = 1,
                             .print = false};
  return sim::explore(options, [attempts](sim::Execution& run) {
    World<A, Orders> w;
    const Ticket ticket = w.submitted();
    run.spawn([&] {
      const std::optional<Claim> claim = w.table.try_claim(0);
      SIM_CHECK(w.table.complete(*claim, 2));
    });
    run.spawn([&] {
      w.table.entries().ask_for_wake(ticket);
      for (;;) {
        const std::uint32_t wakes = w.table.clients().prepare_wait(0);
        if (w.table.entries().take_result(ticket)) break;
        w.table.clients().wait(0, wakes);
      }
      const Failure failure = w.table.entries()[0].failure.load();
      SIM_CHECK(failure.kind == FailureKind::kNone || (attempts == 1 && failure == kKilledBy9 && sim::is_dead(0)));
      SIM_CHECK(failure.kind != FailureKind::kNone || w.table.entries()[0].output_bytes.load() == 2);
      w.table.drop(ticket);
    });
    run.spawn([&] {
      sim::await_end(0, 1);
      if (!sim::is_dead(0)) return;
      w.supervision.recover_worker(0, kKilledBy9, attempts);
      if (attempts == 1) return w.supervision.fail_ready(kKilledBy9);
      if (const std::optional<Claim> claim = w.table.try_claim(1)) SIM_CHECK(w.table.complete(*claim, 2));
    });
    run.check([&] { SIM_CHECK(w.count(TaskState::kFree) == 1); });
  });
}
TEST(TaskTable_Model, CallbackThreadSleeps_WorkerEndsTheTaskOrDies_Called) {
  const Result result = called_back<SimAtomics>();
  expect_ok(result);
  EXPECT_GT(result.executions, 100u);
}
TEST(TaskTable_Model, LastAttemptDies_FailsWithTheReason) { expect_ok(called_back<SimAtomics>(1)); }

// A worker is stopped at any step, like one in a debugger: it is not dead, and its task is not recovered. A task that it has
// not claimed is done by the other worker, which slept.
template <bool kAnnounced>
Result stopped() {
  const sim::Options options{.name = kAnnounced ? "table/stopped" : "table/stopped, not announced",
                             .preemptions = 1,
                             .stale = 0,
                             .crashes = 1,
                             .mortal = 1};
  return sim::explore(options, [](sim::Execution& run) {
    World w;
    SimAtomics::atomic<std::uint32_t> notified{0};  // the supervisor's wakeup
    const auto notify = [&notified] {
      notified.store(1);
      SimAtomics::notify_all(notified);
    };
    const auto work = [&w](unsigned slot) {
      while (!w.table.closed()) {
        if (const std::optional<Claim> claim = w.table.try_claim(slot))
          static_cast<void>(w.table.complete(*claim, 1));
        else
          w.table.wait_for_work(slot);
      }
    };
    run.spawn([&] { work(0); });
    run.spawn([&] { work(1); });
    run.spawn([&] {
      const std::optional<Ticket> ticket = w.table.try_acquire(0);
      if (w.table.submit(*ticket, 0, 1) == Submitted::kNotifySupervisor) notify();
      w.wait_and_take(*ticket);
      w.supervision.close();
      notify();
    });
    run.spawn([&] {
      constexpr auto kAlways = [](std::uint32_t, TaskWord) { return true; };
      sim::await_end(0, 1);  // stopped, or closed
      if (!sim::is_dead(0) || w.table.closed()) return;
      if (w.supervision.prepare_idle(kAlways))
        while (notified.load() == 0) SimAtomics::wait(notified, 0);
      if (w.table.entries().running(0)) w.supervision.recover_worker(0, {FailureKind::kDeadline, 1}, 2);
      // The first time it may call the stopped worker itself.
      for (int look = 0; kAnnounced && look < 2; ++look) w.supervision.help_stuck(kAlways);
    });
    run.check([] {});
  });
}
TEST(TaskTable_Model, StoppedWorkerWasCalled_AnotherOneTakesTheTask) { expect_ok(stopped<true>()); }
TEST(TaskTable_Mutants, StoppedWorkersTaskNotAnnounced_Deadlock) {
  EXPECT_EQ(stopped<false>().failure, sim::Failure::kDeadlock);
}

// The table is reset at any step of a client: the client finds its task gone, and goes on.
TEST(TaskTable_Model, MadeAnewBesideAClient_NothingLost) {
  expect_ok(sim::explore({.name = "table/reset", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    World w(kOneOfEach);
    run.spawn([&] {
      std::optional<Ticket> ticket;
      while (!(ticket = w.table.try_acquire(0))) w.table.wait_for_space();
      if (w.table.submit(*ticket, 0, 1) != Submitted::kNo)
        for (std::optional<TaskWord> word; (word = w.table.entries().look(*ticket)) && !word->is_over();)
          w.table.entries().wait(*ticket);
      w.table.drop(*ticket);
      w.supervision.close();
    });
    run.spawn([&] {
      w.supervision.reset(77, 2);
      while (!w.table.closed()) {
        if (const std::optional<Claim> next = w.table.try_claim(0))
          w.table.complete(*next, 1);
        else
          w.table.wait_for_work(0);
      }
    });
    run.check([&] {
      SIM_CHECK(w.count(TaskState::kFree) == 1);
      w.supervision.check_invariants();
    });
  }));
}

// Mutants of the steps, by atomics that misbehave everywhere, or in the thread of the supervisor of a cast with one client.
constexpr unsigned kSupervisorThread = 3;

struct NobodyWakesClients : SimAtomics {
  template <class T>
  static void notify_all_shared(atomic<T>&) noexcept {}
};
struct NobodyIsWoken : SimAtomics {
  template <class T>
  static void notify_one_shared(atomic<T>&) noexcept {}
};
struct LastOfThreeWakesNobody : SimAtomics {
  template <class T>
  static void notify_one_shared(atomic<T>& a) noexcept {
    if (sim::thread_index() != 2) SimAtomics::notify_one_shared(a);
  }
};
// A worker died between its result and the wake-up, and the wake-up stays lost.
struct SupervisorWakesNobody : SimAtomics {
  template <class T>
  static void notify_all_shared(atomic<T>& a) noexcept {
    if (sim::thread_index() != kSupervisorThread) SimAtomics::notify_all_shared(a);
  }
};
// A worker died between clearing the bit and claiming the task, and the bit stays lost: the supervisor sets none.
struct SupervisorSetsNoBits : SimAtomics {
  template <class T>
  struct atomic : sim::atomic<T> {
    using sim::atomic<T>::atomic;
    T fetch_or(T value, std::memory_order order) noexcept {
      return sim::atomic<T>::fetch_or(sim::thread_index() == kSupervisorThread ? T{0} : value, order);
    }
  };
};
// Takes and gives without looking whether the word is still the same.
struct Blind : SimAtomics {
  template <class T>
  struct atomic : sim::atomic<T> {
    using sim::atomic<T>::atomic;
    bool compare_exchange_strong(T&, T desired, std::memory_order success, std::memory_order) noexcept {
      this->exchange(desired, success == std::memory_order_acquire ? std::memory_order_acq_rel : success);
      return true;
    }
  };
};
FREEHOLD_WEAKER(WeakReadWakes, TaskTableOrders, kReadWakes, relaxed);
FREEHOLD_WEAKER(WeakAddWake, TaskTableOrders, kAddWake, relaxed);

template <class A>
sim::Failure mutant(std::uint32_t mortal, const Cast& cast = {}) {
  return play<A>({.name = "table/mutant step", .preemptions = 2, .stale = 0, .crashes = 1, .mortal = mortal, .print = false},
                 cast)
      .failure;
}
TEST(TaskTable_Mutants, CallsNotMadeOrNotHeard_Deadlock) {
  EXPECT_EQ(called_back<NobodyIsWoken>().failure, sim::Failure::kDeadlock);
  EXPECT_EQ(called_back<LastOfThreeWakesNobody>().failure, sim::Failure::kDeadlock);
  EXPECT_EQ((called_back<SimAtomics, WeakReadWakes>().failure), sim::Failure::kDeadlock);
  EXPECT_EQ((called_back<SimAtomics, WeakAddWake>().failure), sim::Failure::kDeadlock);
}
TEST(TaskTable_Mutants, SleepersNotWoken_Deadlock) {
  EXPECT_EQ(mutant<NobodyWakesClients>(0), sim::Failure::kDeadlock);
  EXPECT_EQ(mutant<NobodyIsWoken>(0), sim::Failure::kDeadlock);
  EXPECT_EQ(mutant<SupervisorWakesNobody>(kWorker), sim::Failure::kDeadlock);
}
TEST(TaskTable_Mutants, LostBitNotSweptUp_Noticed) {
  EXPECT_NE(mutant<SupervisorSetsNoBits>(kWorker), sim::Failure::kNone);
  EXPECT_NE(mutant<SupervisorSetsNoBits>(kClient), sim::Failure::kNone);
}
TEST(TaskTable_Mutants, WordChangedBlindly_Noticed) { EXPECT_NE(mutant<Blind>(0, {.clients = 2}), sim::Failure::kNone); }

}  // namespace
}  // namespace freehold::process
