// SPDX-License-Identifier: MIT
// The task table: clients put tasks into shared memory, workers in other processes run them, and a supervisor cleans up
// after every process that dies. Any process may be killed between any two instructions, and the others go on.
//
//   client:      try_acquire -> write input() -> submit -> wait_for_result -> take -> read output() -> drop
//   worker:      try_claim -> run -> complete, or wait_for_work
//   supervisor:  recover_worker, recover_client, find_overdue, help_stuck ... (task_table_slow.hpp)
//
// Each entry's state word (task_word.hpp) says who owns the entry. It changes by compare-exchange only, and nothing else
// decides. Bits per entry say where to look for a free entry or for a ready task, and which task a worker takes first
// (task_signals.hpp). A process that dies may leave a bit unset or a sleeper unwoken; sweep() mends both.
//
//   Invariant (at rest, or after a sweep): every free entry has its free bit, every ready one its ready bit.
//
// Buffers: there is never a second writer. A task goes to another worker only after its former worker is known to be dead,
// and its memory with it. An overdue worker is marked in the word first, so that it cannot finish while it is being killed.
//
// Damage: a worker may write anywhere in the table. No index or length that was read from it is used before it was compared
// with the shape, of which every process has a copy. find_damage() and reset() are the supervisor's.
//
// Pre of everything: at most one supervisor at a time; recover_*(x) only when x is dead, as waitpid or a closed socket
// tells.
//
// Threads: any thread of the client, the worker or the supervisor that its name says. Lock-free, except those that wait.
//
// Cost: submit to result, with no process asleep: 4 compare-exchanges on the entry, 4 operations on bits, each on a shared
// line.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "freehold/process/task_areas.hpp"
#include "freehold/process/task_signals.hpp"
#include "freehold/process/task_table_layout.hpp"
#include "freehold/process/task_word.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

// What submit() did.
enum class Submitted : std::uint8_t {
  kNo,                // nothing: the entry was taken from its client
  kYes,               // the task is ready
  kNotifySupervisor,  // the same, and the caller has to notify the supervisor
};

// A task that a worker runs.
struct Claim {
  std::uint32_t entry = 0;
  TaskWord word;
};

// Of the state word; those of bits and sleepers are inherited.
struct TaskTableOrders : TaskSignalOrders {
  // acquire: pairs with kRelease; the process that takes an entry sees what its former owner wrote into it.
  static constexpr std::memory_order kAcquire = std::memory_order_acquire;
  // release: pairs with kAcquire; publishes input, output or failure, and for a freed entry that they were read.
  static constexpr std::memory_order kRelease = std::memory_order_release;
};

template <sync::SharedAtomics A, class Orders = TaskTableOrders>
class TaskTable {
  template <class T>
  using atomic = typename A::template atomic<T>;
  using Layout = TaskTableLayout<A>;
  using Header = typename Layout::Header;
  using Worker = typename Layout::Worker;
  using Entry = typename Layout::Entry;
  using Signals = TaskSignals<A, Orders>;
  using NotifyOn = typename Signals::NotifyOn;

 public:
  static constexpr std::uint64_t kMagic = 0x656c626174687266;  // "frhtable"
  static constexpr std::uint32_t kVersion = 4;
  static constexpr std::uint64_t kKilled = 1;  // the limit of a task that kill() has dropped

  // Bytes that a table of this shape takes, areas included; 0 if the shape is impossible.
  [[nodiscard]] static std::uint64_t bytes(const TableShape& shape) noexcept { return Layout::bytes(shape); }

  // Makes a table of zeroed memory. Pre: `memory` is aligned to a cache line and has bytes(shape) != 0 bytes, all zero.
  static void create(void* memory, const TableShape& shape) noexcept {
    auto& header = *static_cast<Header*>(memory);
    header.version = kVersion;
    header.shape = shape;
    header.bytes = bytes(shape);
    header.magic = kMagic;
    TaskTable table(memory);
    for (std::uint32_t i = 0; i < shape.entries; ++i) table.signals_.set_free(i, std::memory_order_relaxed);
  }

  // The shape, if `size` bytes at `memory` are a table that create() made, of this version and as large as it should be.
  [[nodiscard]] static std::optional<TableShape> shape_of(const void* memory, std::uint64_t size) noexcept {
    if (size < sizeof(Header)) return std::nullopt;
    Header header;  // a copy: a worker that writes wildly may do so now
    std::memcpy(&header, memory, sizeof header);
    const bool valid =
        header.magic == kMagic && header.version == kVersion && header.bytes == size && bytes(header.shape) == size;
    return valid ? std::optional(header.shape) : std::nullopt;
  }
  // The version of the table there; none if it is no table.
  [[nodiscard]] static std::optional<std::uint32_t> version_of(const void* memory, std::uint64_t size) noexcept {
    if (size < sizeof(Header)) return std::nullopt;
    Header header;
    std::memcpy(&header, memory, sizeof header);
    return header.magic == kMagic ? std::optional(header.version) : std::nullopt;
  }
  [[nodiscard]] static bool valid(const void* memory, std::uint64_t size) noexcept {
    return shape_of(memory, size).has_value();
  }

  // A process's view of the table. Pre: valid(memory, its size), no worker runs yet that could damage the header, and the
  // memory outlives the view.
  explicit TaskTable(void* memory) noexcept : TaskTable(memory, static_cast<Header*>(memory)->shape) {}
  // The same, with the result of shape_of().
  TaskTable(void* memory, const TableShape& shape) noexcept : TaskTable(memory, Layout(shape), shape) {}

  [[nodiscard]] const TableShape& shape() const noexcept { return shape_; }
  [[nodiscard]] const TaskAreas<A>& areas() const noexcept { return areas_; }
  [[nodiscard]] std::byte* input(std::uint32_t entry) const noexcept { return areas_.input(entry); }
  [[nodiscard]] std::byte* output(std::uint32_t entry) const noexcept { return areas_.output(entry); }

  // ---- the client

  // Takes a free entry to fill. Returns none if the table is full.
  [[nodiscard]] std::optional<Ticket> try_acquire(unsigned client) noexcept {
    // Large entries are always taken from the first on, so that the same few are used again, whose pages exist.
    return signals_.find_free(areas_.are_large(), [&](std::uint32_t i) { return take_free(i, client); });
  }
  // Takes this one if it is free.
  [[nodiscard]] std::optional<Ticket> try_acquire_entry(std::uint32_t entry, unsigned client) noexcept {
    if (!signals_.clear_free(entry)) return std::nullopt;
    return take_free(entry, client);
  }
  [[nodiscard]] TaskWord word(std::uint32_t entry) const noexcept {
    return TaskWord(entries_[entry].state.load(std::memory_order_relaxed));  // relaxed: a look
  }

  // Sleeps until an entry may be free, or for so long, or for no reason.
  void wait_for_space(std::uint64_t nanoseconds = sync::kForever) noexcept { signals_.wait_for_space(nanoseconds); }
  // After a wait was successful: another entry may be free, for which no waiter was woken.
  void pass_on_space() noexcept { signals_.pass_on_space(); }

  // Gives the filled entry to the workers. Pre: the caller holds the ticket from try_acquire().
  Submitted submit(Ticket ticket, unsigned client, std::uint64_t input_bytes, std::uint64_t limit = 0) noexcept {
    return submit(ticket, client, input_bytes, TaskParameters{.limit = limit});
  }
  Submitted submit(Ticket ticket, unsigned client, std::uint64_t input_bytes, const TaskParameters& parameters) noexcept {
    Entry& entry = entries_[ticket.entry];
    entry.input_bytes.store(input_bytes);
    // relaxed, all: published by the word.
    entry.limit.store(parameters.limit, std::memory_order_relaxed);
    entry.started.store(0, std::memory_order_relaxed);
    entry.expires.store(parameters.expires, std::memory_order_relaxed);
    entry.packed.store(PackedParameters(parameters).bits, std::memory_order_relaxed);
    signals_.set_submitted(ticket.entry, parameters.submitted);
    if (parameters.retry.attempts != 0) {
      entry.delay_ms.store(parameters.retry.delay_ms, std::memory_order_relaxed);
      for (unsigned i = 0; i < kMaxRetryCodes; ++i)
        entry.codes[i].store(parameters.retry.codes[i], std::memory_order_relaxed);
    }
    std::uint64_t seen = TaskWord::filling(ticket.generation, client).bits();
    if (!change(ticket.entry, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease)) return Submitted::kNo;
    const NotifyOn least = publish_ready(ticket.entry) ? NotifyOn::kEveryTask : NotifyOn::kTaskWithoutWorker;
    return signals_.take_notify(least) ? Submitted::kNotifySupervisor : Submitted::kYes;
  }

  // Where the client's task stands; none once it is over and was taken.
  [[nodiscard]] std::optional<TaskWord> look(Ticket ticket) const noexcept {
    const TaskWord word(entries_[ticket.entry].state.load(Orders::kAcquire));
    if (word.generation() != ticket.generation || word.state() == TaskState::kFree) return std::nullopt;
    return word;
  }

  // Sleeps until the task may be over, or for so long, or for no reason.
  void wait_for_result(Ticket ticket, std::uint64_t nanoseconds = sync::kForever) noexcept {
    const std::optional<TaskWord> word = look(ticket);
    if (!word || word->is_over() || word->state() == TaskState::kTaking) return;
    std::uint64_t seen = word->bits();
    // relaxed: asks to be woken; nothing is read or published.
    if (!word->waited() && !change(ticket.entry, seen, word->with_waited(), std::memory_order_relaxed)) return;
    A::wait_shared(entries_[ticket.entry].state, word->with_waited().bits(), nanoseconds);
  }

  // The end of the task will add to its client's wakes, which prepare_wait() reads. Nothing happens if it is over.
  void ask_for_wake(Ticket ticket) noexcept {
    for (std::optional<TaskWord> word; (word = look(ticket)) && !word->is_over() && word->state() != TaskState::kTaking;) {
      std::uint64_t seen = word->bits();
      // relaxed: asks to be woken; nothing is read or published.
      if (word->waited() || change(ticket.entry, seen, word->with_waited(), std::memory_order_relaxed)) return;
    }
  }
  // Tasks that end after this call change the client's wakes and end wait_for_wake(). Tasks that ended before it are
  // visible.
  [[nodiscard]] std::uint32_t prepare_wait(unsigned client) noexcept { return signals_.prepare_wait(client); }
  // Sleeps while the wakes are what prepare_wait() returned, or for so long, or for no reason. Returns whether there was
  // one.
  bool wait_for_wake(unsigned client, std::uint32_t wakes, std::uint64_t nanoseconds = sync::kForever) noexcept {
    return signals_.wait_for_wake(client, wakes, nanoseconds);
  }
  // Pre: it is a client's slot.
  void wake_client(unsigned client) noexcept { signals_.wake_client(client); }

  // The ticket of the client's task in this entry, if that is over.
  [[nodiscard]] std::optional<Ticket> result_of(std::uint32_t entry, unsigned client) const noexcept {
    const TaskWord word(entries_[entry].state.load(std::memory_order_relaxed));  // relaxed: taking it decides
    if (!word.is_over() || word.client() != client) return std::nullopt;
    return Ticket{entry, word.generation()};
  }
  // Takes the result of a task that is over; drop() gives the entry back. Returns false to all but one caller.
  [[nodiscard]] bool take(Ticket ticket) noexcept {
    const std::optional<TaskWord> word = look(ticket);
    if (!word || !word->is_over()) return false;
    std::uint64_t seen = word->bits();
    return change(ticket.entry, seen, word->with(TaskState::kTaking), Orders::kAcquire);
  }
  // Of a task that was taken, or that runs: its output, its failure, its input.
  [[nodiscard]] std::uint64_t output_bytes(std::uint32_t entry) const noexcept {
    return entries_[entry].output_bytes.load();
  }
  [[nodiscard]] Failure failure(std::uint32_t entry) const noexcept { return entries_[entry].failure.load(); }
  [[nodiscard]] std::uint64_t input_bytes(std::uint32_t entry) const noexcept { return entries_[entry].input_bytes.load(); }

  // Ends the client's task in any state, filling and taking included: the entry is free now, or will be when its worker has
  // finished. Returns false if the entry no longer belongs to the client.
  bool drop(Ticket ticket) noexcept {
    for (;;) {
      const std::optional<TaskWord> word = look(ticket);
      if (!word || word->abandoned()) return false;
      if (drop_from(ticket.entry, *word)) return true;
    }
  }

  // drop(), and a worker that runs the task has to be killed: it is overdue from now on. Pre: no other thread drops the
  // task.
  bool kill(Ticket ticket) noexcept {
    if (!look(ticket)) return false;
    entries_[ticket.entry].limit.store(kKilled, std::memory_order_relaxed);  // relaxed: a hint; the next look sees it
    return drop(ticket);
  }

  // ---- the worker

  // Takes the next task, in the order of task_signals.hpp. Returns none if no task is ready.
  [[nodiscard]] std::optional<Claim> try_claim(unsigned worker) noexcept {
    return signals_.find_ready([&](std::uint32_t i) { return claim(i, worker); });
  }
  // Sleeps until a task may be ready or the table is closed, or for so long, or for no reason. Returns whether no thread has
  // woken the worker; only then may the worker end instead of looking for a task.
  bool wait_for_work(unsigned worker, std::uint64_t nanoseconds = sync::kForever) noexcept {
    return signals_.wait_for_work(worker, nanoseconds);
  }
  [[nodiscard]] bool closed() const noexcept { return signals_.closed(); }

  // Ends the task, with so many bytes of output or with a failure. Returns false if the supervisor is about to kill this
  // worker, or took it for dead: then the worker must not touch the task any more, and must exit.
  bool complete(const Claim& claim, std::uint64_t output_bytes, Failure failure = {}) noexcept {
    std::uint64_t seen = claim.word.bits();
    entries_[claim.entry].output_bytes.store(output_bytes);
    entries_[claim.entry].failure.store(failure);
    const TaskState state = failure.kind == FailureKind::kNone ? TaskState::kDone : TaskState::kFailed;
    return finish(claim.entry, TaskWord(seen), state);
  }

  // The component has rejected the task with this code. If the retry policy covers the code, the task is ready again, now or
  // after its delay. Returns kNo if the worker has to complete it, and kRevoked where complete() returns false.
  enum class Retried : std::uint8_t { kNo, kYes, kRevoked };
  Retried retry(const Claim& claim, std::int32_t code, std::uint64_t now) noexcept;

  // Notes when the run began, in nanoseconds of the supervisor's clock. A hint for find_overdue().
  void began(const Claim& claim, std::uint64_t now) noexcept {
    entries_[claim.entry].started.store(now, std::memory_order_relaxed);
  }

  // Notes which process the worker is, before its first task. Returns false if another supervisor has taken over since
  // `epoch`: then the worker must exit, because no supervisor would notice its death.
  [[nodiscard]] bool enter(unsigned worker, std::uint64_t identity, std::uint32_t epoch) noexcept {
    workers_[worker].identity.store(identity, Orders::kSetSleeping);
    return epoch_->load(Orders::kRecheck) == epoch;
  }
  // A supervisor begins. Afterwards the identity()s are all the processes that may still touch the table as a worker.
  std::uint32_t new_epoch() noexcept { return epoch_->fetch_add(1, Orders::kSetBit) + 1; }
  [[nodiscard]] std::uint64_t identity(unsigned worker) const noexcept {
    return workers_[worker].identity.load(Orders::kReadSleepers);
  }
  void leave(unsigned worker) noexcept {
    workers_[worker].identity.store(0, std::memory_order_relaxed);  // relaxed: by the supervisor, for the next one
  }

  // For the supervisor and the statistics; relaxed: they publish nothing.
  void set_up(unsigned worker, bool up) noexcept { workers_[worker].up.store(up ? 1 : 0, std::memory_order_relaxed); }
  [[nodiscard]] bool is_up(unsigned worker) const noexcept {
    return workers_[worker].up.load(std::memory_order_relaxed) != 0;
  }
  void count_retried(unsigned worker, std::uint64_t n = 1) noexcept {
    workers_[worker].retried.fetch_add(n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t retried(unsigned worker) const noexcept {
    return workers_[worker].retried.load(std::memory_order_relaxed);
  }
  void count_ended(unsigned worker) noexcept { workers_[worker].ended.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t ended(unsigned worker) const noexcept {
    return workers_[worker].ended.load(std::memory_order_relaxed);
  }

  // ---- the supervisor; what is not defined here is in task_table_slow.hpp

  // The worker is dead (or, for kSupervisor, the former supervisor): its tasks go to other workers, or fail if this was
  // attempt number `attempts`. Calls `held(entry, word, whether it goes to another)` for each task that it held, before any
  // other process can see the outcome, so that a client that has the result finds it counted.
  template <class Held>
  void recover_worker(unsigned worker, Failure reason, unsigned attempts, Held held) noexcept;
  // The same. Returns how many tasks it held.
  unsigned recover_worker(unsigned worker, Failure reason, unsigned attempts) noexcept {
    unsigned held = 0;
    recover_worker(worker, reason, attempts, [&held](std::uint32_t, TaskWord, bool) { ++held; });
    return held;
  }

  // The client process is dead: all its tasks are dropped.
  void recover_client(unsigned client) noexcept;

  // Sets every bit that a dead process has left unset, and wakes every sleeper that it may have left asleep.
  void sweep() noexcept;

  // Marks a running task that is beyond its time limit, and returns it: its worker cannot finish it any more and has to be
  // killed. `since(claim, started, limit)` returns since when it runs, 0 if it does not count yet; `started` is the worker's
  // own note, 0 if there is none.
  template <class Since>
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now, Since since) noexcept;
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now) noexcept {
    return find_overdue(now, [](const Claim&, std::uint64_t started, std::uint64_t) { return started; });
  }
  // Makes tasks ready whose delay is over.
  void begin_due(std::uint64_t now) noexcept;
  // Fails tasks that still wait at the time by which they have to be over. find_overdue() finds the running ones.
  void fail_expired(std::uint64_t now) noexcept;
  // Whether the entry's task has to be over. relaxed: it belongs to a word that is still there when it is changed.
  [[nodiscard]] bool expired(std::uint32_t entry, std::uint64_t now) const noexcept {
    const std::uint64_t expires = entries_[entry].expires.load(std::memory_order_relaxed);
    return expires != 0 && now > expires;
  }
  [[nodiscard]] std::uint32_t within_ms(std::uint32_t entry) const noexcept { return packed(entry).within_ms(); }

  // Publishes each task once more for which `stuck(entry, word)` holds: the worker that was woken, or that cleared its bit,
  // may have been stopped. Of a task that is over it wakes the client once more: the worker may have been stopped before
  // that.
  template <class Stuck>
  void help_stuck(Stuck stuck) noexcept;
  // Marks the running task so that its worker cannot finish it. Returns false if the worker already has.
  bool mark_for_kill(const Claim& claim) noexcept {
    std::uint64_t seen = claim.word.bits();
    // relaxed: nothing is read or published; the worker's compare-exchange fails.
    return change(claim.entry, seen, claim.word.with_overdue(), std::memory_order_relaxed);
  }
  // The task that the worker runs now; none if it runs none.
  [[nodiscard]] std::optional<Claim> running(unsigned worker) const noexcept;
  [[nodiscard]] std::uint64_t limit(std::uint32_t entry) const noexcept {
    return entries_[entry].limit.load(std::memory_order_relaxed);
  }

  // The part of the table that holds an impossible value, because a component wrote there; null if there is none. `known` is
  // the supervisor's own knowledge: closed(), epoch(), is_live(worker), is_connected(client), lasts(entry, word) (it was the
  // same at an earlier check), has_another(worker) (it was asked about this worker before).
  template <class Known>
  [[nodiscard]] const char* find_damage(Known& known) const noexcept;

  // Empties the table after damage: all tasks are lost. `generation`: of the entries, unlikely to be that of a ticket. Pre:
  // no worker lives.
  void reset(std::uint32_t generation, std::uint32_t epoch) noexcept;

  // Fails every task that waits for a worker, or for its time.
  void fail_ready(Failure reason) noexcept;

  // Asks for one notification, when a task finds no worker asleep. Returns whether a task is ready already.
  [[nodiscard]] bool request_notify() noexcept {
    signals_.set_notify(NotifyOn::kTaskWithoutWorker, Orders::kSetSleeping);
    return signals_.any_ready(Orders::kRecheck);
  }
  // Asks for one notification, of the next task. Returns whether the supervisor may sleep: no task waits or runs, and of the
  // tasks that are over `open(entry, word)` holds for none.
  template <class Open>
  [[nodiscard]] bool prepare_idle(Open open) noexcept;
  [[nodiscard]] bool any_ready() const noexcept { return signals_.any_ready(std::memory_order_relaxed); }

  // Lets each worker end as soon as it finds no task.
  void close() noexcept { signals_.close(); }

  // Entries in this state; exact at rest.
  [[nodiscard]] std::uint32_t count(TaskState state) const noexcept {
    return count_if([state](TaskWord word) { return word.state() == state; });
  }

  [[nodiscard]] std::uint32_t waiting() const noexcept { return count(TaskState::kReady) + count(TaskState::kDelayed); }

  // Entries of the client; inexact while it takes and drops some.
  [[nodiscard]] std::uint32_t count_of(unsigned client) const noexcept;

  // Tasks that wait or run, or are about to, of one client or of all.
  [[nodiscard]] std::uint32_t open_of(std::optional<unsigned> client) const noexcept;

  // The invariant at the head, at rest.
  void check_invariants() const noexcept;

 private:
  TaskTable(void* memory, const Layout& layout, const TableShape& shape) noexcept
      : shape_(shape),
        header_(static_cast<Header*>(memory)),
        epoch_(layout.template word<std::uint32_t>(memory, Layout::SharedWord::kEpoch)),
        workers_(Layout::template at<Worker>(memory, layout.workers)),
        entries_(Layout::template at<Entry>(memory, layout.entries)),
        signals_(memory, layout, shape),
        areas_(memory, shape) {}

  // relaxed: it belongs to the word that the caller has read, or is a hint.
  [[nodiscard]] PackedParameters packed(std::uint32_t entry) const noexcept {
    return PackedParameters(entries_[entry].packed.load(std::memory_order_relaxed));
  }

  // The only way in which an entry's state changes. On failure `seen` becomes the state.
  bool change(std::uint32_t i, std::uint64_t& seen, TaskWord to, std::memory_order order) noexcept {
    // relaxed on failure: a caller that acts on the state tries again.
    return entries_[i].state.compare_exchange_strong(seen, to.bits(), order, std::memory_order_relaxed);
  }

  std::optional<Ticket> take_free(std::uint32_t i, unsigned client) noexcept {
    std::uint64_t seen = entries_[i].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    const TaskWord taken = TaskWord(seen).taken_by(client);
    if (TaskWord(seen).state() != TaskState::kFree || !change(i, seen, taken, Orders::kAcquire)) return std::nullopt;
    return Ticket{i, taken.generation()};
  }

  // Sets the bit of a ready entry and wakes a sleeping worker. Returns whether one slept.
  bool publish_ready(std::uint32_t i) noexcept {
    set_ready(i);
    return signals_.wake_one_worker();
  }
  void set_ready(std::uint32_t i) noexcept { signals_.set_ready(i, packed(i).priority()); }
  [[nodiscard]] bool has_ready(std::uint32_t i) const noexcept { return signals_.has_ready(i, packed(i).priority()); }

  // Frees the entry if its state is still `word`. Returns whether it was.
  bool free_from(std::uint32_t i, TaskWord word) noexcept {
    std::uint64_t seen = word.bits();
    if (!change(i, seen, word.freed(), Orders::kRelease)) return false;
    signals_.set_free(i);
    signals_.notify_space();
    return true;
  }
  bool drop_from(std::uint32_t i, TaskWord word) noexcept {
    if (word.state() != TaskState::kRunning) return free_from(i, word);
    std::uint64_t seen = word.bits();
    return change(i, seen, word.with_abandoned(), std::memory_order_relaxed);  // relaxed: a request; publishes nothing
  }

  std::optional<Claim> claim(std::uint32_t i, unsigned worker) noexcept {
    std::uint64_t seen = entries_[i].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    while (TaskWord(seen).state() == TaskState::kReady) {
      const TaskWord taken = TaskWord(seen).with(TaskState::kRunning).with_worker(worker);
      // Again if the client has asked to be woken meanwhile.
      if (change(i, seen, taken, Orders::kAcquire)) return Claim{i, taken};
    }
    return std::nullopt;
  }

  // Wakes the client that waits for the end of this task.
  void wake_waiter(std::uint32_t i, TaskWord word) noexcept {
    A::notify_all_shared(entries_[i].state);
    if (word.client() < shape_.clients) wake_client(word.client());  // else damage
  }

  // From running to over, or to free if the client has dropped the task. `word` is the attempt that ends.
  bool finish(std::uint32_t i, TaskWord word, TaskState state) noexcept {
    for (std::uint64_t seen = word.bits();;) {
      const TaskWord now(seen);
      if (!now.same_attempt(word) || now.overdue()) return false;
      if (now.abandoned()) {
        if (free_from(i, now)) return true;
        seen = entries_[i].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
        continue;
      }
      if (!change(i, seen, now.with(state).without_flags(), Orders::kRelease)) continue;
      if (now.waited()) wake_waiter(i, now);
      return true;
    }
  }

  template <class Counts>
  [[nodiscard]] std::uint32_t count_if(Counts counts) const noexcept;
  [[nodiscard]] bool wants_retry(const Entry& entry, TaskWord word, std::int32_t code) const noexcept;

  // The task's own number, or the pool's.
  [[nodiscard]] unsigned attempts_of(std::uint32_t entry, unsigned attempts) const noexcept {
    const unsigned own = packed(entry).attempts();
    return own != 0 ? std::min(own, TaskWord::kMaxAttempts) : attempts;
  }
  // From running on a dead worker to ready, failed, or free.
  void requeue_or_fail(std::uint32_t i, TaskWord word, Failure reason, unsigned attempts) noexcept;

  const TableShape shape_;
  Header* const header_;
  atomic<std::uint32_t>* const epoch_;  // supervisors so far
  Worker* const workers_;
  Entry* const entries_;
  Signals signals_;
  const TaskAreas<A> areas_;
};

// The table that processes really share.
using Table = TaskTable<sync::NativeAtomics>;

}  // namespace freehold::process

#include "freehold/process/task_table_slow.hpp"  // IWYU pragma: keep
