// SPDX-License-Identifier: MIT
// The supervisor's side of a task table: after a death, a deadline or damage, and before it sleeps.
//
//   TableSupervision supervision(table);
//   supervision.recover_worker(slot, reason, attempts, held);    // its process is dead
//   while (const auto late = supervision.find_overdue(now, since)) kill(late->word.worker());
//
// Invariant: whatever step a process died at, after recover_*() of it every task of a live client is ready, delayed, running
// on another worker or over, every bit is set, and every process that sleeps may sleep.
//
// Pre of everything: at most one supervisor at a time; recover_*(x) only when x is dead, as waitpid or a closed socket
// tells.
//
// Threads: the supervisor's. Cost: each looks at every entry.
#pragma once
#include <cstdint>
#include <optional>

#include "freehold/base/check.hpp"
#include "freehold/process/table/task_table.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders = TaskTableOrders>
class TableSupervision {
  using Call = SupervisorCall<A, Orders>;
  using Header = typename TaskTableLayout<A>::Header;

 public:
  explicit TableSupervision(TaskTable<A, Orders>& table) noexcept : table_(table) {}

  // The worker is dead (or, for kSupervisor, the former supervisor): its tasks go to other workers, or fail if this was
  // attempt number `attempts`. Calls `held(entry, word, whether it goes to another)` for each task that it held, before any
  // other process can see the outcome, so that a client that has the result finds it counted.
  template <class Held>
  void recover_worker(unsigned worker, Failure reason, unsigned attempts, Held held) noexcept {
    if (worker < table_.shape().workers) table_.sleepers_.forget(worker);
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      if (word.worker() != worker) continue;
      if (word.state() == TaskState::kRunning) {
        const unsigned most = table_.entries_[i].attempts(attempts);
        held(i, word, !word.abandoned() && word.attempt() + 1 < most);
        publish(i, table_.entries_.hand_on(i, word, reason, most));
      } else if (word.is_over()) {
        table_.wake_waiter(i, word);  // the worker may have died before it woke the client
      }
    }
    sweep();
  }
  void recover_worker(unsigned worker, Failure reason, unsigned attempts) noexcept {
    recover_worker(worker, reason, attempts, [](std::uint32_t, TaskWord, bool) {});
  }
  // The client process is dead: all its tasks are dropped.
  void recover_client(unsigned client) noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      for (;;) {
        const TaskWord word = table_.entries_.read(i);
        if (word.state() == TaskState::kFree || word.client() != client || word.abandoned()) break;
        if (table_.drop_from(i, word)) break;
      }
    }
    sweep();
  }
  // Sets every bit that a dead process has left unset, and wakes every sleeper that it may have left asleep.
  void sweep() noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskState state = table_.entries_.read(i).state();
      if (state == TaskState::kFree) table_.free_.add(i);
      if (state == TaskState::kReady) table_.set_ready(i);
    }
    table_.sleepers_.wake_all();
    table_.free_.notify_all();
  }
  // Publishes each task once more for which `stuck(entry, word)` holds: the worker that was woken, or that cleared its bit,
  // may have been stopped. Of a task that is over it wakes the client once more: the worker may have been stopped before
  // that.
  template <class Stuck>
  void help_stuck(Stuck stuck) noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      // While all workers are busy, its bit is enough.
      if (word.state() == TaskState::kReady && stuck(i, word) && (!has_ready(i) || table_.sleepers_.any()))
        table_.publish_ready(i);
      if (word.is_over() && stuck(i, word)) table_.wake_waiter(i, word);
    }
  }

  // ---- times

  // Marks a running task that is beyond its time limit, and returns it: its worker cannot finish it any more and has to be
  // killed. `since(claim, started, limit)` returns since when it runs, 0 if it does not count yet; `started` is the worker's
  // own note, 0: no note.
  template <class Since>
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now, Since since) noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const Claim claim{i, table_.entries_.read(i)};
      if (claim.word.state() != TaskState::kRunning || claim.word.overdue()) continue;
      // relaxed: both belong to the word that is still there when it is marked, or marking fails.
      const auto& entry = table_.entries_[i];
      const std::uint64_t limit = entry.limit.load(std::memory_order_relaxed);
      if (entry.expired(now) && table_.entries_.mark_for_kill(claim)) return claim;
      if (limit == 0) continue;
      const std::uint64_t begun = since(claim, entry.started.load(std::memory_order_relaxed), limit);
      if (begun == 0 || now < begun || now - begun <= limit) continue;
      if (table_.entries_.mark_for_kill(claim)) return claim;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now) noexcept {
    return find_overdue(now, [](const Claim&, std::uint64_t started, std::uint64_t) { return started; });
  }
  // Makes tasks ready whose delay is over.
  void begin_due(std::uint64_t now) noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      // relaxed: it belongs to the word that is still there when it is changed.
      if (word.state() != TaskState::kDelayed || table_.entries_[i].due.load(std::memory_order_relaxed) > now) continue;
      if (table_.entries_.end_delay(i, word)) table_.publish_ready(i);
    }
  }
  // Fails tasks that still wait at the time by which they have to be over. find_overdue() finds the running ones.
  void fail_expired(std::uint64_t now) noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      if (!word.waits() || !table_.entries_[i].expired(now)) continue;
      const std::optional<Claim> task = table_.entries_.claim_waiting(i, word, TaskWord::kSupervisor);
      const auto within = static_cast<std::int32_t>(table_.entries_[i].parameters().within_ms());
      if (task) table_.complete(*task, 0, {FailureKind::kDeadline, within});
    }
  }
  // Fails every task that waits for a worker, or for its time.
  void fail_ready(Failure reason) noexcept {
    begin_due(~std::uint64_t{0});
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const std::optional<Claim> task = table_.entries_.claim(i, TaskWord::kSupervisor);
      if (task) table_.complete(*task, 0, reason);
    }
  }

  // ---- damage

  // Returns the part of the table that holds an impossible value, because a component wrote there; null: no damage. `known`
  // is the supervisor's own knowledge: closed(), epoch(), is_live(worker), is_connected(client), lasts(entry, word) (it was
  // the same at an earlier check), has_another(worker) (it was asked about this worker before).
  template <class Known>
  [[nodiscard]] const char* find_damage(Known& known) const noexcept {
    if (*header() != Header::of(table_.shape())) return "its header";
    if (table_.sleepers_.closed_word() != (known.closed() ? 1u : 0u)) return "whether it is closed";
    if (table_.lives_.epoch() != known.epoch()) return "its epoch";
    if (table_.free_.has_damage() || table_.ready_.has_damage() || table_.sleepers_.has_damage()) return "its bits";
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      if (word.state() == TaskState::kFree) continue;
      if (word.client() >= table_.shape().clients) return "a task's client";
      if (!word.abandoned() && !known.is_connected(word.client())) return "a task's client";
      if (word.state() != TaskState::kRunning) continue;
      const unsigned worker = word.worker();
      if (worker >= table_.shape().workers) return "a task's worker";
      if (!known.lasts(i, word)) continue;
      if (!known.is_live(worker) || table_.sleepers_.has(worker) || known.has_another(worker)) return "a task's worker";
    }
    return nullptr;
  }
  // Empties the table after damage: all tasks are lost. `generation`: of the entries, unlikely to be that of a ticket. Pre:
  // no worker lives.
  void reset(std::uint32_t generation, std::uint32_t epoch) noexcept {
    *header() = Header::of(table_.shape());
    table_.free_.reset();
    table_.ready_.reset();
    table_.sleepers_.reset();
    table_.lives_.reset(epoch);
    table_.entries_.reset(generation);
    for (unsigned client = 0; client < table_.shape().clients; ++client) table_.clients_.wake(client);
    sweep();
  }

  // ---- the supervisor's own rest

  // Asks for one notification, when a task finds no worker asleep. Returns whether a task is ready already.
  [[nodiscard]] bool request_notify() noexcept {
    table_.call_.ask(Call::On::kTaskWithoutWorker, Orders::kSetSleeping);
    return table_.ready_.any(Orders::kRecheck);
  }
  // Asks for one notification, of the next task. Returns whether the supervisor may sleep: no task waits or runs, and of the
  // tasks that are over `open(entry, word)` holds for none.
  template <class Open>
  [[nodiscard]] bool prepare_idle(Open open) noexcept {
    const typename Call::On former = table_.call_.exchange(Call::On::kEveryTask);
    // A task whose bit was cleared since shows in its word: the recheck is an acquire load, too.
    bool none = !table_.ready_.any(Orders::kRecheck);
    for (std::uint32_t i = 0; none && i < table_.entries_.size(); ++i) {
      const TaskWord word = table_.entries_.read(i);
      none = !word.waits() && word.state() != TaskState::kRunning && !(word.is_over() && open(i, word));
    }
    // relaxed: a client that saw the other value notifies once more
    if (!none) table_.call_.ask(former, std::memory_order_relaxed);
    return none;
  }
  // Lets each worker end as soon as it finds no task.
  void close() noexcept { table_.sleepers_.close(); }

  // The invariant at the head of task_table.hpp, at rest.
  void check_invariants() const noexcept {
    for (std::uint32_t i = 0; i < table_.entries_.size(); ++i) {
      const TaskState state = table_.entries_.word(i).state();
      FREEHOLD_ASSERT(state != TaskState::kFree || table_.free_.has(i));
      FREEHOLD_ASSERT(state != TaskState::kReady || has_ready(i));
    }
  }

 private:
  [[nodiscard]] Header* header() const noexcept { return table_.layout().template at<Header>(0); }
  [[nodiscard]] bool has_ready(std::uint32_t i) const noexcept {
    return table_.ready_.has(i, table_.entries_[i].parameters().priority());
  }
  // A dead worker's task has got this word.
  void publish(std::uint32_t i, TaskWord word) noexcept {
    if (word.state() == TaskState::kFree) table_.publish_free(i);
    if (word.state() == TaskState::kReady) table_.publish_ready(i);
    if (word.state() == TaskState::kFailed) table_.wake_waiter(i, word);
  }

  TaskTable<A, Orders>& table_;
};

}  // namespace freehold::process
