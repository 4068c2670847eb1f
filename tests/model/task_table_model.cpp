// SPDX-License-Identifier: MIT
// The task table with clients, workers and supervisors, any of which may stop for ever at any step. The oracle: every
// process that lives gets every result once and the right one, none sleeps for ever, the buffers are free of races, and at
// the end every entry is free. Mutants: every order weakened, and every step of the protocol that a crash needs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "freehold/process/task_table.hpp"
#include "sim/explore.hpp"
#include "sim/sim_atomics.hpp"

namespace freehold::process {
namespace {

using sim::Result;
using sim::SimAtomics;

constexpr std::uint64_t kAnswer = 1000;  // what a worker adds to the input, which is the number of bytes

// A table in zeroed memory of its own.
template <class Table>
class Memory {
 public:
  explicit Memory(const TableShape& shape)
      : bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, base::align_up(Table::bytes(shape), 4096)))) {
    std::memset(bytes_.get(), 0, Table::bytes(shape));
    Table::create(bytes_.get(), shape);
  }
  [[nodiscard]] std::byte* get() const noexcept { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

constexpr TableShape kOneOfEach{.entries = 1, .workers = 1, .clients = 1, .max_input = 64, .max_output = 64};

struct Cast {
  unsigned clients = 1, tasks = 1;  // threads, and tasks of each
  unsigned entries = 1;
  bool supervisor_dies = false;
};

// Everything that runs. Threads in this order: clients, the worker, the spare worker that begins when the worker ends badly,
// the supervisor, the one that takes over from it.
template <class Table>
struct Play {
  explicit Play(const Cast& cast)
      : cast_(cast),
        memory_({.entries = cast.entries, .workers = 2, .clients = 2, .max_input = 64, .max_output = 64}),
        table_(memory_.get()) {}

  [[nodiscard]] unsigned worker() const noexcept { return cast_.clients; }
  [[nodiscard]] unsigned supervisor() const noexcept { return cast_.clients + 2; }
  [[nodiscard]] std::uint32_t all_clients() const noexcept { return (1u << cast_.clients) - 1; }

  void client(unsigned c) {
    for (unsigned task = 0; task < cast_.tasks; ++task) {
      std::optional<Ticket> ticket = table_.try_acquire(c);
      if (!ticket) {
        while (!(ticket = table_.try_acquire(c))) table_.wait_for_space();
        table_.pass_on_space();
      }
      const std::uint64_t input = 10 * c + task;
      SIM_CHECK(table_.submit(*ticket, c, input) != Submitted::kNo);
      while (!table_.take(*ticket)) {
        SIM_CHECK(table_.look(*ticket).has_value());
        table_.wait_for_result(*ticket);
      }
      SIM_CHECK(table_.failure(ticket->entry).kind == FailureKind::kNone);
      SIM_CHECK(table_.output_bytes(ticket->entry) == input + kAnswer);
      SIM_CHECK(!table_.take(*ticket));
      SIM_CHECK(table_.drop(*ticket));
      SIM_CHECK(!table_.drop(*ticket));
      ++delivered[c];
    }
  }

  void work(unsigned slot) {
    for (;;) {
      if (const std::optional<Claim> claim = table_.try_claim(slot)) {
        if (!table_.complete(*claim, table_.input_bytes(claim->entry) + kAnswer)) return;
      } else if (table_.closed()) {
        return;
      } else {
        table_.wait_for_work(slot);
      }
    }
  }
  void spare_worker() {
    sim::await_end(0, 1u << worker());
    if (sim::is_dead(worker())) work(1);
  }

  void supervise(std::uint32_t known) {
    while ((known & all_clients()) != all_clients()) {
      const std::uint32_t ended = sim::await_end(known);
      recover(ended & ~known);
      known = ended;
    }
    table_.close();
    // The worker may die yet, holding what the last client has abandoned.
    while ((known >> worker() & 1) == 0) {
      const std::uint32_t ended = sim::await_end(known);
      recover(ended & ~known);
      known = ended;
    }
  }
  void recover(std::uint32_t ended) {
    for (unsigned c = 0; c < cast_.clients; ++c)
      if ((ended >> c & 1) != 0 && sim::is_dead(c)) table_.recover_client(c);
    if ((ended >> worker() & 1) != 0 && sim::is_dead(worker())) table_.recover_worker(0, {FailureKind::kSignal, 9}, 3);
  }
  void second_supervisor() {
    sim::await_end(0, 1u << supervisor());
    if (!sim::is_dead(supervisor())) return;
    table_.sweep();
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
      SIM_CHECK(table_.count(TaskState::kFree) == cast_.entries);
      table_.check_invariants();
    });
  }

  const Cast cast_;
  Memory<Table> memory_;
  Table table_;
  unsigned delivered[2] = {};
};

template <class Table>
Result play(const sim::Options& options, const Cast& cast) {
  return sim::explore(options, [&](sim::Execution& run) {
    Play<Table> scene(cast);
    scene.run(run);
  });
}
using Shipped = TaskTable<SimAtomics>;

constexpr std::uint32_t kClient = 0b0001, kWorker = 0b0010, kSupervisor = 0b1000;  // of a cast with one client

TEST(TaskTable_Model, OneTask_WorkerDies_DeliveredOnce) {
  const Result result =
      play<Shipped>({.name = "table/worker", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = kWorker}, {});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, OneTask_WorkerDies_StaleReads_DeliveredOnce) {
  const Result result =
      play<Shipped>({.name = "table/worker, stale", .preemptions = 0, .stale = 1, .crashes = 1, .mortal = kWorker}, {});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, OneTask_ClientDies_EntryFree) {
  const Result result = play<Shipped>({.name = "table/client", .preemptions = 1, .crashes = 1, .mortal = kClient}, {});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, OneTask_ClientAndWorkerDie_EntryFree) {
  const Result result =
      play<Shipped>({.name = "table/both", .preemptions = 0, .stale = 0, .crashes = 2, .mortal = kClient | kWorker}, {});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, OneTask_SupervisorDies_AnotherTakesOver) {
  const Result result =
      play<Shipped>({.name = "table/supervisor", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = kSupervisor},
                    {.supervisor_dies = true});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, OneTask_WorkerAndSupervisorDie_DeliveredOnce) {
  const Result result =
      play<Shipped>({.name = "table/two dead", .preemptions = 0, .stale = 0, .crashes = 2, .mortal = kWorker | kSupervisor},
                    {.supervisor_dies = true});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, TwoClientsOneEntry_OneDies_TheOtherGetsIn) {
  const Result result =
      play<Shipped>({.name = "table/space", .preemptions = 1, .stale = 0, .crashes = 1, .mortal = 0b001}, {.clients = 2});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, TwoClientsTwoEntries_NobodyDies) {
  const Result result = play<Shipped>({.name = "table/two", .preemptions = 1, .stale = 0}, {.clients = 2, .entries = 2});
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, TwoTasksEach_Pct_AnybodyDies) {
  const Result result = play<Shipped>({.name = "table/pct",
                                       .strategy = sim::Strategy::kPct,
                                       .stale = 2,
                                       .crashes = 2,
                                       .mortal = 0b010111,
                                       .depth = 4,
                                       .executions = 100'000},
                                      {.clients = 2, .tasks = 2, .entries = 2, .supervisor_dies = true});
  EXPECT_TRUE(result.ok()) << result;
}

// A client that changes its mind at any moment, and a worker that finishes, dies, or is marked for kill meanwhile.
TEST(TaskTable_Model, Dropped_WhileItRuns_EntryFreeOnce) {
  const Result result = sim::explore({.name = "table/drop", .preemptions = 3, .stale = 0}, [](sim::Execution& run) {
    Memory<Shipped> memory(kOneOfEach);
    Shipped table(memory.get());
    const std::optional<Ticket> ticket = table.try_acquire(0);
    table.submit(*ticket, 0, 1);
    run.spawn([&] {
      if (const std::optional<Claim> claim = table.try_claim(0)) {
        SIM_CHECK(table.input_bytes(claim->entry) == 1);
        SIM_CHECK(table.complete(*claim, 2));
      }
    });
    run.spawn([&] {
      SIM_CHECK(table.drop(*ticket));
      SIM_CHECK(!table.drop(*ticket));
      if (const std::optional<Ticket> again = table.try_acquire(0)) SIM_CHECK(table.submit(*again, 0, 1) != Submitted::kNo);
    });
    run.check([&] {
      SIM_CHECK(table.count(TaskState::kFree) + table.count(TaskState::kReady) + table.count(TaskState::kDone) == 1);
      table.check_invariants();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}
// A supervisor that looks at the clock while workers take, begin, finish and die: only a task that has begun is ever
// overdue, and only by its own time. Two tasks use one entry in turn, and each may go to a second worker.
template <class Table>
Result timed(std::uint32_t mortal) {
  return sim::explore({.name = mortal == 0 ? "table/timed" : "table/timed, worker dies",
                       .preemptions = mortal == 0 ? 2u : 1u,
                       .stale = mortal == 0 ? 1u : 0u,
                       .crashes = mortal == 0 ? 0u : 1u,
                       .mortal = mortal},
                      [](sim::Execution& run) {
                        constexpr std::uint64_t kLimit = 5;
                        Memory<Table> memory({.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
                        Table table(memory.get());
                        SimAtomics::atomic<std::uint64_t> clock{1};
                        std::uint64_t begun[2][2] = {};  // by task and attempt
                        const auto work = [&](unsigned slot) {
                          while (!table.closed()) {
                            const std::optional<Claim> claim = table.try_claim(slot);
                            if (!claim) {
                              table.wait_for_work(slot);
                              continue;
                            }
                            const std::uint64_t time = clock.load();
                            begun[claim->word.generation() - 1][claim->word.attempt()] = time;
                            table.began(*claim, time);
                            if (!table.complete(*claim, 0)) return;
                          }
                        };
                        run.spawn([&] { work(0); });
                        run.spawn([&] {
                          for (unsigned task = 0; task < 2; ++task) {
                            const std::optional<Ticket> ticket = table.try_acquire(0);
                            SIM_CHECK(table.submit(*ticket, 0, 1, kLimit) != Submitted::kNo);
                            while (!table.take(*ticket)) table.wait_for_result(*ticket);
                            table.drop(*ticket);
                          }
                          table.close();
                        });
                        run.spawn([&] {
                          for (std::uint64_t time : {std::uint64_t{4}, std::uint64_t{8}}) {
                            clock.store(time);
                            if (sim::is_dead(0)) break;
                            const std::optional<Claim> claim = table.find_overdue(time);
                            if (!claim) continue;
                            const std::uint64_t since = begun[claim->word.generation() - 1][claim->word.attempt()];
                            SIM_CHECK(since != 0 && time - since > kLimit);
                            sim::await_end(0, 1);
                            break;
                          }
                          sim::await_end(0, 1);
                          table.recover_worker(0, {FailureKind::kDeadline, 5}, 2);
                          clock.store(12);
                          const std::optional<Claim> next = table.try_claim(1);
                          SIM_CHECK(!table.find_overdue(12));
                          if (next) SIM_CHECK(table.complete(*next, 0));
                          work(1);
                        });
                        run.check([] {});
                      });
}
TEST(TaskTable_Model, TwoTasksInTurn_OnlyWhatHasBegunIsOverdue) {
  const Result result = timed<Shipped>(0);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, WorkerDies_TheNextOnesTimeIsItsOwn) {
  const Result result = timed<Shipped>(1);
  EXPECT_TRUE(result.ok()) << result;
}
// A component refuses its task, which has to wait for its next run; its worker may die at any step, and the supervisor looks
// at clock and times meanwhile. The task is neither lost nor begun before its time, and takes no other run's time for its
// own.
template <class Table>
Result refused(std::uint32_t mortal) {
  return sim::explore({.name = mortal == 0 ? "table/refused" : "table/refused, worker dies",
                       .preemptions = 2,
                       .stale = 1,
                       .crashes = mortal == 0 ? 0u : 1u,
                       .mortal = mortal},
                      [](sim::Execution& run) {
                        constexpr std::uint64_t kDue = 1'000'010;
                        Memory<Table> memory({.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
                        Table table(memory.get());
                        const std::optional<Ticket> ticket = table.try_acquire(0);
                        const TaskParameters parameters{.limit = 5, .retry = {.codes = {7}, .attempts = 3, .delay_ms = 1}};
                        table.submit(*ticket, 0, 1, parameters);
                        run.spawn([&] {
                          const std::optional<Claim> claim = table.try_claim(0);
                          table.began(*claim, 10);
                          SIM_CHECK(table.retry(*claim, 7, 10) == Table::Retried::kYes);
                        });
                        run.spawn([&] {
                          while (!table.take(*ticket)) table.wait_for_result(*ticket);
                          SIM_CHECK(table.failure(ticket->entry).kind == FailureKind::kNone);
                          SIM_CHECK(table.drop(*ticket));
                        });
                        run.spawn([&] {
                          SIM_CHECK(!table.prepare_idle([](std::uint32_t, TaskWord) { return false; }));
                          SIM_CHECK(!table.find_overdue(12));
                          table.begin_due(12);
                          sim::await_end(0, 1);
                          if (sim::is_dead(0)) table.recover_worker(0, {FailureKind::kSignal, 9}, 3);
                          std::optional<Claim> claim = table.try_claim(1);
                          SIM_CHECK(!claim || sim::is_dead(0));
                          if (!claim) {
                            table.begin_due(kDue);
                            claim = table.try_claim(1);
                          }
                          SIM_CHECK(claim && !table.find_overdue(2 * kDue));
                          SIM_CHECK(table.complete(*claim, 3));
                        });
                        run.check([&] {
                          SIM_CHECK(table.count(TaskState::kFree) == 1);
                          table.check_invariants();
                        });
                      });
}
TEST(TaskTable_Model, ComponentRefuses_RunsAgainInTime) {
  const Result result = refused<Shipped>(0);
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Model, ComponentRefusesAndWorkerDies_RunsAgain) {
  const Result result = refused<Shipped>(1);
  EXPECT_TRUE(result.ok()) << result;
}
// Two tasks, the later one of a higher priority; a worker that may die takes one of them, and the next one what is left.
template <class Table>
Result two_priorities() {
  return sim::explore({.name = "table/priorities", .preemptions = 2, .stale = 1, .crashes = 1, .mortal = 1},
                      [](sim::Execution& run) {
                        Memory<Table> memory({.entries = 2, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
                        Table table(memory.get());
                        const std::optional<Ticket> tickets[] = {table.try_acquire(0), table.try_acquire(0)};
                        run.spawn([&] {
                          const std::optional<Claim> claim = table.try_claim(0);
                          if (claim) SIM_CHECK(table.complete(*claim, 0));
                        });
                        run.spawn([&] {
                          table.submit(*tickets[0], 0, 1, TaskParameters{.priority = Priority::kLow, .submitted = 1});
                          table.submit(*tickets[1], 0, 1, TaskParameters{.priority = Priority::kHigh, .submitted = 2});
                        });
                        run.spawn([&] {
                          sim::await_end(0b001, 0b011);
                          sim::await_end(0b010, 0b011);
                          if (sim::is_dead(0)) table.recover_worker(0, {FailureKind::kSignal, 9}, 3);
                          const bool high_waits = table.word(tickets[1]->entry).state() == TaskState::kReady;
                          const std::optional<Claim> first = table.try_claim(1);
                          SIM_CHECK(!high_waits || first->entry == tickets[1]->entry);
                          if (first) SIM_CHECK(table.complete(*first, 0));
                          if (const std::optional<Claim> second = table.try_claim(1)) SIM_CHECK(table.complete(*second, 0));
                        });
                        run.check([&] { SIM_CHECK(table.count(TaskState::kDone) == 2); });
                      });
}
TEST(TaskTable_Model, TwoPriorities_WorkerDies_TheHigherFirstAndBothRun) {
  const Result result = two_priorities<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
}
// A client that sleeps until any of its tasks ends; the worker may die before or after it ends the task.
template <class Table>
Result called_back() {
  return sim::explore({.name = "table/callback", .preemptions = 2, .stale = 1, .crashes = 1, .mortal = 1, .print = false},
                      [](sim::Execution& run) {
                        Memory<Table> memory({.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
                        Table table(memory.get());
                        const std::optional<Ticket> ticket = table.try_acquire(0);
                        table.submit(*ticket, 0, 1);
                        run.spawn([&] {
                          const std::optional<Claim> claim = table.try_claim(0);
                          SIM_CHECK(table.complete(*claim, 2));
                        });
                        run.spawn([&] {
                          table.ask_for_wake(*ticket);
                          for (;;) {
                            const std::uint32_t wakes = table.prepare_wait(0);
                            if (table.take(*ticket)) break;
                            table.wait_for_wake(0, wakes);
                          }
                          SIM_CHECK(table.output_bytes(ticket->entry) == 2);
                          table.drop(*ticket);
                        });
                        run.spawn([&] {
                          sim::await_end(0, 1);
                          if (!sim::is_dead(0)) return;
                          table.recover_worker(0, {FailureKind::kSignal, 9}, 2);
                          if (const std::optional<Claim> claim = table.try_claim(1)) SIM_CHECK(table.complete(*claim, 2));
                        });
                        run.check([&] { SIM_CHECK(table.count(TaskState::kFree) == 1); });
                      });
}
TEST(TaskTable_Model, CallbackThreadSleeps_WorkerEndsTheTaskOrDies_Called) {
  const Result result = called_back<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_GT(result.executions, 100u);
}
// The supervisor takes a free entry for a moment, to give its pages back, and a client may wait for it.
TEST(TaskTable_Model, EntryIsPurged_ClientGetsIt) {
  const Result result = sim::explore({.name = "table/purge", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    Memory<Shipped> memory(kOneOfEach);
    Shipped table(memory.get());
    run.spawn([&] {
      std::optional<Ticket> ticket;
      while (!(ticket = table.try_acquire(0))) table.wait_for_space();
      table.pass_on_space();
      SIM_CHECK(table.drop(*ticket));
    });
    run.spawn([&] {
      if (const std::optional<Ticket> ticket = table.try_acquire_entry(0, TaskWord::kPurger)) SIM_CHECK(table.drop(*ticket));
    });
    run.check([&] {
      SIM_CHECK(table.count(TaskState::kFree) == 1);
      table.check_invariants();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}

// A client wants its task's worker dead, which finishes or is killed meanwhile.
TEST(TaskTable_Model, KilledByItsClient_EntryFreeOnce) {
  const Result result = sim::explore({.name = "table/kill", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    Memory<Shipped> memory(kOneOfEach);
    Shipped table(memory.get());
    const std::optional<Ticket> ticket = table.try_acquire(0);
    table.submit(*ticket, 0, 1);
    run.spawn([&] {
      if (const std::optional<Claim> claim = table.try_claim(0)) static_cast<void>(table.complete(*claim, 2));
    });
    run.spawn([&] {
      SIM_CHECK(table.kill(*ticket));
      // The entry's next task has a limit of its own.
      if (const std::optional<Ticket> again = table.try_acquire(0)) {
        SIM_CHECK(table.submit(*again, 0, 1) != Submitted::kNo);
        SIM_CHECK(table.limit(again->entry) == 0);
      }
    });
    run.spawn([&] {
      const auto claim = table.find_overdue(5, [](const Claim&, std::uint64_t, std::uint64_t) { return std::uint64_t{1}; });
      if (claim) SIM_CHECK(claim->word.generation() == ticket->generation);
      sim::await_end(0, 1);
      table.recover_worker(0, {FailureKind::kDeadline, 0}, 3);
    });
    run.check([&] {
      SIM_CHECK(table.count(TaskState::kRunning) + table.count(TaskState::kFilling) == 0);
      table.check_invariants();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}
template <bool kWaitsForTheEnd>
Result killed_late() {
  return sim::explore({.name = "table/killed late", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    Memory<Shipped> memory({.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
    Shipped table(memory.get());
    const std::optional<Ticket> ticket = table.try_acquire(0);
    table.submit(*ticket, 0, 1, 5);
    const std::optional<Claim> slow = table.try_claim(0);
    table.began(*slow, 10);
    bool finished = false;
    run.spawn([&] { finished = table.complete(*slow, 2); });
    run.spawn([&] {
      SIM_CHECK(!table.find_overdue(15));
      if (!table.find_overdue(16)) return;
      if (kWaitsForTheEnd) sim::await_end(0);
      table.recover_worker(0, {FailureKind::kDeadline, 5}, 2);
      const std::optional<Claim> again = table.try_claim(1);
      SIM_CHECK(again && table.complete(*again, 3));
    });
    run.check([&] {
      SIM_CHECK(table.take(*ticket));
      SIM_CHECK(table.output_bytes(ticket->entry) == (finished ? 2u : 3u));
    });
  });
}
TEST(TaskTable_Model, OverdueWorkerFinishesLate_TheOtherResultStands) {
  const Result result = killed_late<true>();
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Mutants, HandedOnBeforeTheFormerWorkerIsDead_Race) {
  EXPECT_EQ(killed_late<false>().failure, sim::Failure::kRace);
}
TEST(TaskTable_Model, LastAttemptDies_FailsWithTheReason) {
  const Result result = sim::explore(
      {.name = "table/fails", .preemptions = 2, .stale = 1, .crashes = 1, .mortal = 1}, [](sim::Execution& run) {
        Memory<Shipped> memory(kOneOfEach);
        Shipped table(memory.get());
        const std::optional<Ticket> ticket = table.try_acquire(0);
        table.submit(*ticket, 0, 1);
        run.spawn([&] {
          const std::optional<Claim> claim = table.try_claim(0);
          SIM_CHECK(table.complete(*claim, 2));
        });
        run.spawn([&] {
          while (!table.take(*ticket)) table.wait_for_result(*ticket);
          const Failure failure = table.failure(ticket->entry);
          SIM_CHECK(failure.kind == FailureKind::kNone || (failure == Failure{FailureKind::kSignal, 11} && sim::is_dead(0)));
          table.drop(*ticket);
        });
        run.spawn([&] {
          sim::await_end(0b010);
          if (!sim::is_dead(0)) return;
          table.recover_worker(0, {FailureKind::kSignal, 11}, 1);
          table.fail_ready({FailureKind::kSignal, 11});
        });
        run.check([&] { SIM_CHECK(table.count(TaskState::kFree) == 1); });
      });
  EXPECT_TRUE(result.ok()) << result;
}

// The supervisor's wakeup; natively an eventfd.
struct Wakeup {
  SimAtomics::atomic<std::uint32_t> notified{0};
  void notify() {
    notified.store(1);
    SimAtomics::notify_all(notified);
  }
  void wait() {
    while (notified.load() == 0) SimAtomics::wait(notified, 0);
  }
};
constexpr auto kAlways = [](std::uint32_t, TaskWord) { return true; };

template <class Table>
void submit_and_notify(Table& table, Wakeup& wakeup) {
  const std::optional<Ticket> ticket = table.try_acquire(0);
  if (table.submit(*ticket, 0, 1) == Submitted::kNotifySupervisor) wakeup.notify();
}

// The supervisor sleeps while there is no task.
template <class Table>
Result supervisor_called() {
  return sim::explore({.name = "table/call", .preemptions = 3, .stale = 1, .print = false}, [](sim::Execution& run) {
    Memory<Table> memory(kOneOfEach);
    Table table(memory.get());
    Wakeup wakeup;
    run.spawn([&] { submit_and_notify(table, wakeup); });
    run.spawn([&] {
      if (!table.request_notify()) wakeup.wait();
      SIM_CHECK(table.try_claim(0));
    });
    run.check([] {});
  });
}
TEST(TaskTable_Model, TaskWithoutWorkers_SupervisorIsCalled) {
  const Result result = supervisor_called<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
}

// The supervisor rests while there is nothing to do: the next task notifies it, even if it notified another one before that
// has already finished.
template <class Table>
Result resting() {
  return sim::explore({.name = "table/rest", .preemptions = 3, .stale = 1, .print = false}, [](sim::Execution& run) {
    Memory<Table> memory(kOneOfEach);
    Table table(memory.get());
    Wakeup wakeup;
    run.spawn([&] { submit_and_notify(table, wakeup); });
    run.spawn([&] { static_cast<void>(table.try_claim(0)); });
    run.spawn([&] {
      if (table.prepare_idle(kAlways)) wakeup.wait();
      SIM_CHECK(table.count(TaskState::kFree) == 0 && table.count(TaskState::kFilling) == 0);
    });
    run.check([] {});
  });
}
TEST(TaskTable_Model, TaskWhileTheSupervisorRests_SupervisorIsCalled) {
  const Result result = resting<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
}

// A worker is stopped at any step, like one in a debugger: it is not dead, and its task is not recovered. A task that it has
// not claimed is done by the other worker, which slept.
template <bool kAnnounced>
Result stopped() {
  return sim::explore(
      {.name = kAnnounced ? "table/stopped" : "table/stopped, not announced",
       .preemptions = 1,
       .stale = 0,
       .crashes = 1,
       .mortal = 1},
      [](sim::Execution& run) {
        Memory<Shipped> memory({.entries = 1, .workers = 2, .clients = 1, .max_input = 64, .max_output = 64});
        Shipped table(memory.get());
        Wakeup wakeup;
        const auto work = [&table](unsigned slot) {
          while (!table.closed()) {
            if (const std::optional<Claim> claim = table.try_claim(slot))
              static_cast<void>(table.complete(*claim, 1));
            else
              table.wait_for_work(slot);
          }
        };
        run.spawn([&] { work(0); });
        run.spawn([&] { work(1); });
        run.spawn([&] {
          const std::optional<Ticket> ticket = table.try_acquire(0);
          if (table.submit(*ticket, 0, 1) == Submitted::kNotifySupervisor) wakeup.notify();
          while (!table.take(*ticket)) table.wait_for_result(*ticket);
          table.close();
          wakeup.notify();
        });
        run.spawn([&] {
          sim::await_end(0, 1);  // stopped, or closed
          if (!sim::is_dead(0) || table.closed()) return;
          if (table.prepare_idle(kAlways)) wakeup.wait();
          if (table.running(0)) table.recover_worker(0, {FailureKind::kDeadline, 1}, 2);
          // The first time it may call the stopped worker itself.
          for (int look = 0; kAnnounced && look < 2; ++look) table.help_stuck(kAlways);
        });
        run.check([] {});
      });
}
TEST(TaskTable_Model, StoppedWorkerWasCalled_AnotherOneTakesTheTask) {
  const Result result = stopped<true>();
  EXPECT_TRUE(result.ok()) << result;
}
TEST(TaskTable_Mutants, StoppedWorkersTaskNotAnnounced_Deadlock) {
  EXPECT_EQ(stopped<false>().failure, sim::Failure::kDeadlock);
}

// The table is reset at any step of a client: the client finds its task gone, and goes on.
TEST(TaskTable_Model, MadeAnewBesideAClient_NothingLost) {
  const Result result = sim::explore({.name = "table/reset", .preemptions = 3, .stale = 1}, [](sim::Execution& run) {
    Memory<Shipped> memory(kOneOfEach);
    Shipped table(memory.get());
    run.spawn([&] {
      std::optional<Ticket> ticket;
      while (!(ticket = table.try_acquire(0))) table.wait_for_space();
      if (table.submit(*ticket, 0, 1) != Submitted::kNo) {
        for (std::optional<TaskWord> word; (word = table.look(*ticket)) && !word->is_over();) table.wait_for_result(*ticket);
      }
      table.drop(*ticket);
      table.close();
    });
    run.spawn([&] {
      table.reset(77, 2);
      while (!table.closed()) {
        if (const std::optional<Claim> next = table.try_claim(0))
          table.complete(*next, 1);
        else
          table.wait_for_work(0);
      }
    });
    run.check([&] {
      SIM_CHECK(table.count(TaskState::kFree) == 1);
      table.check_invariants();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}

// A worker that its supervisor has just started when that dies: the next one knows of it, or it does not begin.
template <class Table>
Result taking_over() {
  return sim::explore({.name = "table/take over", .preemptions = 3, .stale = 2, .print = false}, [](sim::Execution& run) {
    Memory<Table> memory(kOneOfEach);
    Table table(memory.get());
    SIM_CHECK(table.new_epoch() == 1);
    bool enters = false, known = false;
    run.spawn([&] { enters = table.enter(0, 77, 1); });
    run.spawn([&] {
      table.new_epoch();
      known = table.identity(0) == 77;
    });
    run.check([&] { SIM_CHECK(known || !enters); });
  });
}
TEST(TaskTable_Model, SupervisorTakesOver_NoWorkerUnknown) {
  const Result result = taking_over<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
}

// A sleeping worker is told that there will be no more.
template <class Table>
Result closing() {
  return sim::explore({.name = "table/close", .preemptions = 3, .stale = 2, .print = false}, [](sim::Execution& run) {
    Memory<Table> memory(kOneOfEach);
    Table table(memory.get());
    run.spawn([&] {
      while (!table.closed()) table.wait_for_work(0);
    });
    run.spawn([&] { table.close(); });
    run.check([] {});
  });
}
TEST(TaskTable_Model, Closed_SleepingWorkerEnds) {
  const Result result = closing<Shipped>();
  EXPECT_TRUE(result.ok()) << result;
}

// Mutants of the orders: each one step weaker.
using Order = std::memory_order;
struct WeakAcquire : TaskTableOrders {
  static constexpr Order kAcquire = std::memory_order_relaxed;
};
struct WeakRelease : TaskTableOrders {
  static constexpr Order kRelease = std::memory_order_relaxed;
};
struct WeakSetBit : TaskTableOrders {
  static constexpr Order kSetBit = std::memory_order_acq_rel;
};
struct WeakReadSleepers : TaskTableOrders {
  static constexpr Order kReadSleepers = std::memory_order_acquire;
};
struct WeakSetSleeping : TaskTableOrders {
  static constexpr Order kSetSleeping = std::memory_order_release;
};
struct WeakRecheck : TaskTableOrders {
  static constexpr Order kRecheck = std::memory_order_acquire;
};
struct WeakClearBit : TaskTableOrders {
  static constexpr Order kClearBit = std::memory_order_relaxed;
};
struct WeakReadWakes : TaskTableOrders {
  static constexpr Order kReadWakes = std::memory_order_relaxed;
};
struct WeakAddWake : TaskTableOrders {
  static constexpr Order kAddWake = std::memory_order_relaxed;
};

TEST(TaskTable_Mutants, TakingOverWithWeakOrders_WorkerUnknown) {
  EXPECT_EQ((taking_over<TaskTable<SimAtomics, WeakSetSleeping>>().failure), sim::Failure::kCheck);
}

// The first failure that the scenarios show.
template <class Table>
sim::Failure seen_by_any() {
  const sim::Options options{.name = "table/mutant", .preemptions = 2, .stale = 1, .executions = 300'000, .print = false};
  for (const Cast& cast : {Cast{}, Cast{.clients = 2}})
    if (const Result result = play<Table>(options, cast); result.failure != sim::Failure::kNone) return result.failure;
  if (const Result result = supervisor_called<Table>(); result.failure != sim::Failure::kNone) return result.failure;
  if (const Result result = resting<Table>(); result.failure != sim::Failure::kNone) return result.failure;
  return closing<Table>().failure;
}
template <class Orders>
class TaskTable_WeakOrders : public testing::Test {};
using EachWeaker = testing::Types<WeakAcquire, WeakRelease, WeakSetBit, WeakReadSleepers, WeakSetSleeping, WeakRecheck,
                                  WeakClearBit, WeakReadWakes, WeakAddWake>;
TYPED_TEST_SUITE(TaskTable_WeakOrders, EachWeaker);
TYPED_TEST(TaskTable_WeakOrders, Mutant_Noticed) {
  EXPECT_NE((seen_by_any<TaskTable<SimAtomics, TypeParam>>()), sim::Failure::kNone);
}

// Mutants of the steps, by atomics that misbehave in the thread of the supervisor of a cast with one client, or everywhere.
constexpr unsigned kSupervisorThread = 3;
bool in_supervisor() { return sim::thread_index() == kSupervisorThread; }

struct NobodyWakesClients : SimAtomics {
  template <class T>
  static void notify_all_shared(atomic<T>&) noexcept {}
};
struct NobodyIsWoken : SimAtomics {
  template <class T>
  static void notify_one_shared(atomic<T>&) noexcept {}
};
// A worker died between its result and the wake-up, and nobody makes up for it.
struct SupervisorWakesNobody : SimAtomics {
  template <class T>
  static void notify_all_shared(atomic<T>& a) noexcept {
    if (!in_supervisor()) SimAtomics::notify_all_shared(a);
  }
};
// A worker died between clearing the bit and claiming the task, and the bit stays lost: this thread sets none.
template <class T, unsigned kThread>
class UnsweptAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  T fetch_or(T value, Order order) noexcept {
    return sim::atomic<T>::fetch_or(sim::thread_index() == kThread ? T{0} : value, order);
  }
};
template <unsigned kThread>
struct BitsNotSetBy : SimAtomics {
  template <class T>
  using atomic = UnsweptAtomic<T, kThread>;
};
using SupervisorSetsNoBits = BitsNotSetBy<kSupervisorThread>;
using SupervisorOfThreeSetsNoBits = BitsNotSetBy<2>;  // in scenes of three threads

// Takes and gives without looking whether the word is still the same.
template <class T>
class BlindAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  bool compare_exchange_strong(T&, T desired, Order success, Order) noexcept {
    this->exchange(desired, success == Order::acquire ? Order::acq_rel : success);
    return true;
  }
};
struct Blind : SimAtomics {
  template <class T>
  using atomic = BlindAtomic<T>;
};

// The time of the entry's former task, or of the former attempt, stays.
template <class T, unsigned kThread>
class KeptTimeAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  void store(T value, Order order = std::memory_order_seq_cst) noexcept {
    if (value != T{0} || sim::thread_index() != kThread) sim::atomic<T>::store(value, order);
  }
};
template <unsigned kThread>
struct TimeKeptBy : SimAtomics {
  template <class T>
  using atomic = KeptTimeAtomic<T, kThread>;
};

// A worker gives its task back, and nobody knows until when.
template <class T>
class ForgetfulAtomic : public sim::atomic<T> {
 public:
  using sim::atomic<T>::atomic;
  void store(T value, Order order = std::memory_order_seq_cst) noexcept {
    if (sim::thread_index() != 0 || value < static_cast<T>(1'000'000)) sim::atomic<T>::store(value, order);
  }
};
struct DueForgotten : SimAtomics {
  template <class T>
  using atomic = ForgetfulAtomic<T>;
};

template <class Atomics>
sim::Failure mutant(std::uint32_t mortal, const Cast& cast = {}) {
  return play<TaskTable<Atomics>>(
             {.name = "table/mutant step", .preemptions = 2, .stale = 0, .crashes = 1, .mortal = mortal, .print = false},
             cast)
      .failure;
}
struct LastThreadWakesNobody : SimAtomics {
  template <class T>
  static void notify_one_shared(atomic<T>& a) noexcept {
    if (sim::thread_index() != 2) SimAtomics::notify_one_shared(a);
  }
};
TEST(TaskTable_Mutants, CallsNotMadeOrNotHeard_Deadlock) {
  EXPECT_EQ(called_back<TaskTable<NobodyIsWoken>>().failure, sim::Failure::kDeadlock);
  EXPECT_EQ(called_back<TaskTable<LastThreadWakesNobody>>().failure, sim::Failure::kDeadlock);
  EXPECT_EQ((called_back<TaskTable<SimAtomics, WeakReadWakes>>().failure), sim::Failure::kDeadlock);
  EXPECT_EQ((called_back<TaskTable<SimAtomics, WeakAddWake>>().failure), sim::Failure::kDeadlock);
}
TEST(TaskTable_Mutants, ClientsNotWoken_Deadlock) { EXPECT_EQ(mutant<NobodyWakesClients>(0), sim::Failure::kDeadlock); }
TEST(TaskTable_Mutants, WorkersNotCalled_Deadlock) { EXPECT_EQ(mutant<NobodyIsWoken>(0), sim::Failure::kDeadlock); }
TEST(TaskTable_Mutants, DeadWorkersWakeUpNotMade_Deadlock) {
  EXPECT_EQ(mutant<SupervisorWakesNobody>(kWorker), sim::Failure::kDeadlock);
}
TEST(TaskTable_Mutants, LostBitNotSweptUp_Noticed) {
  EXPECT_NE(mutant<SupervisorSetsNoBits>(kWorker), sim::Failure::kNone);
  EXPECT_NE(mutant<SupervisorSetsNoBits>(kClient), sim::Failure::kNone);
}
TEST(TaskTable_Mutants, TimeOfTheFormerTaskStays_Noticed) {
  EXPECT_EQ((timed<TaskTable<TimeKeptBy<1>>>(0).failure), sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, TimeOfTheFormerAttemptStays_Noticed) {
  EXPECT_EQ((timed<TaskTable<TimeKeptBy<2>>>(1).failure), sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, TimeOfTheRefusedRunStays_Noticed) {
  EXPECT_EQ((refused<TaskTable<TimeKeptBy<0>>>(0).failure), sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, DelayForgotten_BegunTooEarly) {
  EXPECT_EQ((refused<TaskTable<DueForgotten>>(0).failure), sim::Failure::kCheck);
}
TEST(TaskTable_Mutants, DeadWorkersTasksBitNotSet_Lost) {
  EXPECT_NE((two_priorities<TaskTable<SupervisorOfThreeSetsNoBits>>().failure), sim::Failure::kNone);
}
TEST(TaskTable_Mutants, WordChangedBlindly_Noticed) { EXPECT_NE(mutant<Blind>(0, {.clients = 2}), sim::Failure::kNone); }

}  // namespace
}  // namespace freehold::process
