// SPDX-License-Identifier: MIT
// The task table: clients put tasks into shared memory, workers in other processes run them, and a supervisor cleans up
// after every process that dies. Any process may be killed between any two instructions, and the others go on.
//
//   client:      try_acquire -> write input() -> submit -> entries().wait -> take_result -> read output() -> drop
//   worker:      try_claim -> run -> complete, or wait_for_work
//   supervisor:  table_supervision.hpp
//
// The table joins objects, each with its invariant: the entries' words, which alone decide (task_entries.hpp); where to look
// for a free entry (free_entries.hpp) or a ready task (ready_tasks.hpp); who sleeps (worker_rows.hpp, table_wakes.hpp). Its
// functions change a word first and then set the bit and wake. A process that dies between the two leaves a bit unset or a
// sleeper unwoken; the supervisor's sweep() mends both.
//
//   Invariant (at rest, or after a sweep): every free entry has its free bit, every ready one its ready bit.
//
// Buffers: there is never a second writer. A task goes to another worker only after its former worker is known to be dead,
// and its memory with it. An overdue worker is marked in the word first, so that it cannot finish while it is being killed.
//
// Damage: a worker may write anywhere in the table. No index or length that was read from it is used before it was compared
// with the shape, of which every process has a copy.
//
// Threads: any thread of the client or the worker that its name says. Lock-free, except those that wait.
//
// Cost: submit to result, with no process asleep: 4 compare-exchanges on the entry, 4 operations on bits, each on a shared
// line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "freehold/process/table/free_entries.hpp"
#include "freehold/process/table/ready_tasks.hpp"
#include "freehold/process/table/table_wakes.hpp"
#include "freehold/process/table/task_entries.hpp"
#include "freehold/process/table/worker_rows.hpp"

namespace freehold::process {

// The result of submit().
enum class Submitted : std::uint8_t {
  kNo,                // nothing: the entry was taken from its client
  kYes,               // the task is ready
  kNotifySupervisor,  // the same, and the caller has to notify the supervisor
};

template <sync::SharedAtomics A, class Orders>
class TableSupervision;

template <sync::SharedAtomics A, class Orders = TaskTableOrders>
class TaskTable {
  using Layout = TaskTableLayout<A>;
  using Header = typename Layout::Header;
  using Entries = TaskEntries<A, Orders>;
  using Lives = WorkerLives<A, Orders>;
  using Call = SupervisorCall<A, Orders>;

 public:
  static constexpr std::uint32_t kVersion = Layout::kVersion;

  // Bytes that a table of this shape takes, areas included; 0 if the shape is impossible.
  [[nodiscard]] static std::uint64_t bytes(const TableShape& shape) noexcept { return Layout::bytes(shape); }

  // Makes a table of zeroed memory. Pre: `memory` is aligned to a cache line and has bytes(shape) != 0 bytes, all zero.
  static void create(void* memory, const TableShape& shape) noexcept {
    *static_cast<Header*>(memory) = Header::of(shape);
    TaskTable table(memory);
    for (std::uint32_t i = 0; i < shape.entries; ++i) table.free_.add(i);
  }

  // The shape, if `size` bytes at `memory` are a table that create() made, of this version and as large as it should be.
  [[nodiscard]] static std::optional<TableShape> shape_of(const void* memory, std::uint64_t size) noexcept {
    const std::optional<Header> header = header_of(memory, size);
    return header && *header == Header::of(header->shape) && header->bytes == size ? std::optional(header->shape)
                                                                                   : std::nullopt;
  }
  // The version of the table there; none if it is no table.
  [[nodiscard]] static std::optional<std::uint32_t> version_of(const void* memory, std::uint64_t size) noexcept {
    const std::optional<Header> header = header_of(memory, size);
    return header ? std::optional(header->version) : std::nullopt;
  }

  // A process's view of the table. Pre: shape_of(memory, its size), no worker runs yet that could damage the header, and
  // the memory outlives the view.
  explicit TaskTable(void* memory) noexcept : TaskTable(memory, static_cast<Header*>(memory)->shape) {}
  // The same, with the result of shape_of().
  TaskTable(void* memory, const TableShape& shape) noexcept : layout_(memory, shape) {}

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const TableShape& shape() const noexcept { return layout_.shape; }
  [[nodiscard]] Entries& entries() noexcept { return entries_; }
  [[nodiscard]] const Entries& entries() const noexcept { return entries_; }
  [[nodiscard]] Lives& workers() noexcept { return lives_; }
  [[nodiscard]] const Lives& workers() const noexcept { return lives_; }
  [[nodiscard]] ClientWakes<A, Orders>& clients() noexcept { return clients_; }

  // ---- the client

  // Takes a free entry to fill. Returns none if the table is full.
  [[nodiscard]] std::optional<Ticket> try_acquire(unsigned client) noexcept {
    // Large entries are always taken from the first on, so that the same few are used again, whose pages exist.
    return free_.find(layout_.has_large_areas(), [&](std::uint32_t i) { return entries_.take(i, client); });
  }
  // Takes this one if it is free.
  [[nodiscard]] std::optional<Ticket> try_acquire_entry(std::uint32_t entry, unsigned client) noexcept {
    return free_.remove(entry) ? entries_.take(entry, client) : std::nullopt;
  }
  void wait_for_space(std::uint64_t nanoseconds = sync::kForever) noexcept { free_.wait(nanoseconds); }
  void pass_on_space() noexcept { free_.pass_on(); }

  // Gives the filled entry to the workers. Pre: the caller holds the ticket from try_acquire().
  Submitted submit(Ticket ticket, unsigned client, std::uint64_t input_bytes,
                   const TaskParameters& parameters = {}) noexcept {
    entries_[ticket.entry].fill(input_bytes, parameters);
    ready_.set_submitted(ticket.entry, parameters.submitted);
    if (!entries_.submit(ticket, client)) return Submitted::kNo;
    const auto least = publish_ready(ticket.entry) ? Call::On::kEveryTask : Call::On::kTaskWithoutWorker;
    return call_.take(least) ? Submitted::kNotifySupervisor : Submitted::kYes;
  }

  // Ends the client's task in any state, filling and taking included: the entry is free now, or will be when its worker has
  // finished. Returns false if the entry no longer belongs to the client.
  bool drop(Ticket ticket) noexcept {
    for (;;) {
      const std::optional<TaskWord> word = entries_.look(ticket);
      if (!word || word->abandoned()) return false;
      if (drop_from(ticket.entry, *word)) return true;
    }
  }
  // drop(), and a worker that runs the task has to be killed: it is overdue from now on. Pre: no other thread drops the
  // task.
  bool kill(Ticket ticket) noexcept {
    if (!entries_.look(ticket)) return false;
    // relaxed: a hint; the next look sees it
    entries_[ticket.entry].limit.store(Entries::Entry::kKilled, std::memory_order_relaxed);
    return drop(ticket);
  }

  // ---- the worker

  // Takes the next task, in the order of ready_tasks.hpp. Returns none if no task is ready.
  [[nodiscard]] std::optional<Claim> try_claim(unsigned worker) noexcept {
    return ready_.find([&](std::uint32_t i) { return entries_.claim(i, worker); });
  }
  [[nodiscard]] bool any_ready() const noexcept { return ready_.any(std::memory_order_relaxed); }
  // Sleeps until a task may be ready or the table is closed; see SleepingWorkers::wait().
  bool wait_for_work(unsigned worker, std::uint64_t nanoseconds = sync::kForever) noexcept {
    return sleepers_.wait(worker, nanoseconds, [this] { return ready_.any(Orders::kRecheck); });
  }
  [[nodiscard]] bool closed() const noexcept { return sleepers_.closed(); }

  // Ends the task, with so many bytes of output or with a failure. Returns false if the supervisor is about to kill this
  // worker, or took it for dead: then the worker must not touch the task any more, and must exit.
  bool complete(const Claim& claim, std::uint64_t output_bytes, Failure failure = {}) noexcept {
    entries_[claim.entry].output_bytes.store(output_bytes);
    entries_[claim.entry].failure.store(failure);
    const TaskState state = failure.kind == FailureKind::kNone ? TaskState::kDone : TaskState::kFailed;
    const auto over = [state](TaskWord word) { return word.with(state).without_flags(); };
    const std::optional<TaskWord> word = entries_.end_run(claim, over);
    if (word && word->abandoned())
      publish_free(claim.entry);
    else if (word && word->waited())
      wake_waiter(claim.entry, *word);
    return word.has_value();
  }

  // The component has rejected the task with this code. If the retry policy covers the code, the task is ready again, now or
  // after its delay. Returns kNo if the worker has to complete it, and kRevoked where complete() returns false.
  enum class Retried : std::uint8_t { kNo, kYes, kRevoked };
  Retried retry(const Claim& claim, std::int32_t code, std::uint64_t now) noexcept {
    if (!entries_[claim.entry].wants_retry(claim.word.attempt(), code)) return Retried::kNo;
    const TaskState state = entries_[claim.entry].delay_from(now) == 0 ? TaskState::kReady : TaskState::kDelayed;
    const auto again = [state](TaskWord word) { return word.next_attempt().with(state); };
    const std::optional<TaskWord> word = entries_.end_run(claim, again);
    if (!word) return Retried::kRevoked;
    if (word->abandoned())
      publish_free(claim.entry);
    else if (state == TaskState::kReady)
      publish_ready(claim.entry);
    return Retried::kYes;
  }

 private:
  friend class TableSupervision<A, Orders>;

  // A copy: a worker that writes wildly may do so now.
  static std::optional<Header> header_of(const void* memory, std::uint64_t size) noexcept {
    Header header;
    if (size < sizeof header) return std::nullopt;
    std::memcpy(&header, memory, sizeof header);
    return header.magic == Layout::kMagic ? std::optional(header) : std::nullopt;
  }

  // Sets the bit of a ready entry and wakes a sleeping worker. Returns whether one slept.
  bool publish_ready(std::uint32_t i) noexcept {
    set_ready(i);
    return sleepers_.wake_one();
  }
  void set_ready(std::uint32_t i) noexcept { ready_.add(i, entries_[i].parameters().priority()); }
  void publish_free(std::uint32_t i) noexcept {
    free_.add(i);
    free_.notify_one();
  }
  bool drop_from(std::uint32_t i, TaskWord word) noexcept {
    if (word.state() == TaskState::kRunning) return entries_.abandon(i, word);
    if (!entries_.free(i, word)) return false;
    publish_free(i);
    return true;
  }
  // Wakes the client that waits for the end of this task.
  void wake_waiter(std::uint32_t i, TaskWord word) noexcept {
    entries_.wake(i);
    if (word.client() < layout_.shape.clients) clients_.wake(word.client());  // else damage
  }

  const Layout layout_;
  Entries entries_{layout_};
  FreeEntries<A, Orders> free_{layout_};
  ReadyTasks<A, Orders> ready_{layout_};
  SleepingWorkers<A, Orders> sleepers_{layout_};
  Lives lives_{layout_};
  ClientWakes<A, Orders> clients_{layout_};
  Call call_{layout_};
};

// The table that processes really share.
using Table = TaskTable<sync::NativeAtomics>;

}  // namespace freehold::process
