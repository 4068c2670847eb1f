// SPDX-License-Identifier: MIT
// The task table: clients put tasks into shared memory, workers in other processes run them, and a supervisor cleans up
// after every process that dies. Any process may be killed between any two instructions, and the others go on.
//
//   client:      try_acquire -> write input() -> submit -> wait_for_result -> take -> read output() -> drop
//   worker:      try_claim -> run -> complete, or wait_for_work
//   supervisor:  recover_worker, recover_client, find_overdue, help_stuck ... (task_table_slow.hpp)
//
// Each entry's state word (task_word.hpp) says who owns the entry. It changes by compare-exchange only, and nothing else
// decides. Bits per entry say where to look for a free entry or for a ready task. A bit is set after the word and cleared
// before it. So a bit may be stale, and every user checks the word; or a bit may be missing because a process died in
// between, and then sweep() sets it again from the word. A process that dies may also leave a sleeper unwoken, which
// sweep() wakes.
//
//   Invariant (at rest, or after a sweep): every free entry has its free bit, every ready one its ready bit.
//
// Order: clients take entries round and round the table. A worker takes a task of the highest priority that has a ready one.
// Among these it takes the one submitted first of the next kCompared in the table, round and round from where the last one
// was found. So tasks of one priority start in the order of their submission while at most kCompared of them wait, and none
// is passed over for ever by its equals. A task waits as long as there are tasks of a higher priority.
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

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
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

struct TaskTableOrders {
  // The state word.
  // acquire: pairs with kRelease; the process that takes an entry sees what its former owner wrote into it.
  static constexpr std::memory_order kAcquire = std::memory_order_acquire;
  // release: pairs with kAcquire; publishes input, output or failure, and for a freed entry that they were read.
  static constexpr std::memory_order kRelease = std::memory_order_release;

  // The bits, and sleeping. A thread that sets a bit reads afterwards who sleeps; a thread that goes to sleep announces it
  // and then checks the bits again. All four are seq_cst, or both could miss the other (store buffering). release, too: the
  // entry's word is visible to the thread that clears the bit.
  static constexpr std::memory_order kSetBit = std::memory_order_seq_cst;
  static constexpr std::memory_order kReadSleepers = std::memory_order_seq_cst;
  static constexpr std::memory_order kSetSleeping = std::memory_order_seq_cst;
  static constexpr std::memory_order kRecheck = std::memory_order_seq_cst;
  // acquire: pairs with kSetBit; else the word could seem older than its bit, and the bit would be lost.
  static constexpr std::memory_order kClearBit = std::memory_order_acquire;

  // acquire and release: a worker that close() wakes sees that the table is closed.
  static constexpr std::memory_order kReadWakes = std::memory_order_acquire;
  static constexpr std::memory_order kAddWake = std::memory_order_release;
};

template <sync::SharedAtomics A, class Orders = TaskTableOrders>
class TaskTable {
  template <class T>
  using atomic = typename A::template atomic<T>;
  using Layout = TaskTableLayout<A>;
  using Header = typename Layout::Header;
  using Bits = typename Layout::Bits;
  using ReadyBits = typename Layout::ReadyBits;
  using Worker = typename Layout::Worker;
  using Entry = typename Layout::Entry;
  template <class T>
  using Line = typename Layout::template Line<T>;

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
    for (std::uint32_t i = 0; i < shape.entries; ++i)
      table.free_[i / 64].bits[0].fetch_or(base::bit(i % 64), std::memory_order_relaxed);
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
  TaskTable(void* memory, const TableShape& shape) noexcept : shape_(shape), header_(static_cast<Header*>(memory)) {
    const Layout layout(shape);
    auto* const start = static_cast<std::byte*>(memory);
    const auto at = [start]<class T>(T*& pointer, std::uint64_t offset) { pointer = reinterpret_cast<T*>(start + offset); };
    at(free_, layout.free);
    at(ready_, layout.ready);
    at(submitted_, layout.submitted);
    at(sleeping_, layout.sleeping);
    at(clients_, layout.clients);
    at(workers_, layout.workers);
    at(entries_, layout.entries);
    Line<std::uint32_t>* lines = nullptr;
    at(lines, layout.lines);
    Line<std::uint64_t>* cursors = nullptr;
    at(cursors, layout.lines + 5 * sizeof *lines);
    free_cursor_ = &lines[0].word;
    space_ = &lines[1].word;
    closed_ = &lines[2].word;
    notify_on_ = &lines[3].word;
    epoch_ = &lines[4].word;
    ready_cursors_ = &cursors->word;
    areas_ = start + layout.areas;
    output_offset_ = layout.output_offset;
    area_bytes_ = layout.area_bytes;
    guarded_ = layout.guarded;
  }

  [[nodiscard]] const TableShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::byte* input(std::uint32_t entry) const noexcept { return areas_ + entry * area_bytes_; }
  [[nodiscard]] std::byte* output(std::uint32_t entry) const noexcept { return input(entry) + output_offset_; }
  // Of input and output area together.
  [[nodiscard]] std::uint64_t area_bytes() const noexcept { return area_bytes_; }
  [[nodiscard]] std::uint64_t areas_offset() const noexcept { return Layout(shape_).areas; }
  // Calls `guard(address, bytes)` for each guard page, which lies between two areas and is not used.
  template <class Guard>
  void for_each_guard(Guard guard) const {
    guard(areas_ - Layout::kPage, Layout::kPage);
    for (std::uint32_t i = 0; guarded_ && i < shape_.entries; ++i) {
      guard(output(i) - Layout::kPage, Layout::kPage);
      guard(input(i) + area_bytes_ - Layout::kPage, Layout::kPage);
    }
  }

  // ---- the client

  // Takes a free entry to fill. Returns none if the table is full.
  [[nodiscard]] std::optional<Ticket> try_acquire(unsigned client) noexcept {
    // relaxed, the cursor: where to begin; any entry is right. Large entries are always taken from the first on, so that the
    // same few are used again, whose pages exist.
    const std::optional<Ticket> ticket =
        find_free(is_large() ? 0 : free_cursor_->load(std::memory_order_relaxed) % shape_.entries, client);
    if (ticket && !is_large()) free_cursor_->store(ticket->entry + 1, std::memory_order_relaxed);
    return ticket;
  }
  // Takes this one if it is free.
  [[nodiscard]] std::optional<Ticket> try_acquire_entry(std::uint32_t entry, unsigned client) noexcept {
    const std::uint64_t bit = base::bit(entry % 64);
    if ((free_[entry / 64].bits[0].fetch_and(~bit, Orders::kClearBit) & bit) == 0) return std::nullopt;
    return take_free(entry, client);
  }
  // Whether entries are so large that their pages are given back while they are free.
  [[nodiscard]] bool is_large() const noexcept { return area_bytes_ > 2 * kKeptBytes; }
  // Calls `purge(offset, bytes)`, from the table's beginning, for the pages that an entry may have used and need not keep.
  // Pre: the caller has acquired it.
  template <class Purge>
  void purge(std::uint32_t entry, Purge purge) const {
    const std::uint64_t area = areas_offset() + entry * area_bytes_;
    if (shape_.max_input > kKeptBytes)
      purge(area + kKeptBytes, base::align_up(shape_.max_input, Layout::kPage) - kKeptBytes);
    if (shape_.max_output > kKeptBytes)
      purge(area + output_offset_ + kKeptBytes, base::align_up(shape_.max_output, Layout::kPage) - kKeptBytes);
  }
  [[nodiscard]] TaskWord word(std::uint32_t entry) const noexcept {
    return TaskWord(entries_[entry].state.load(std::memory_order_relaxed));  // relaxed: a look
  }

  // Sleeps until an entry may be free, or for so long, or for no reason.
  void wait_for_space(std::uint64_t nanoseconds = sync::kForever) noexcept {
    const std::uint32_t seen = space_->fetch_or(1, Orders::kSetSleeping) | 1;
    if (any(free_, Orders::kRecheck)) return;
    A::wait_shared(*space_, seen, nanoseconds);
    // The waking thread cleared the flag, and cannot know whether others sleep.
    space_->fetch_or(1, Orders::kSetSleeping);
  }
  // After a wait was successful: another entry may be free, for which no waiter was woken.
  void pass_on_space() noexcept {
    if (any(free_, Orders::kRecheck)) notify_space();
  }

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
    submitted_[ticket.entry].store(parameters.submitted, std::memory_order_relaxed);
    if (parameters.retry.attempts != 0) {
      entry.delay_ms.store(parameters.retry.delay_ms, std::memory_order_relaxed);
      for (unsigned i = 0; i < kMaxRetryCodes; ++i)
        entry.codes[i].store(parameters.retry.codes[i], std::memory_order_relaxed);
    }
    std::uint64_t seen = TaskWord::filling(ticket.generation, client).bits();
    if (!change(ticket.entry, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease)) return Submitted::kNo;
    const NotifyOn least = publish_ready(ticket.entry) ? NotifyOn::kEveryTask : NotifyOn::kTaskWithoutWorker;
    // relaxed: a token.
    const bool wanted = notify_on_->load(Orders::kReadSleepers) >= static_cast<std::uint32_t>(least) &&
                        notify_on_->exchange(0, std::memory_order_relaxed) != 0;
    return wanted ? Submitted::kNotifySupervisor : Submitted::kYes;
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
  // visible. It is a read-modify-write, so that it comes either before or after the addition of wake_client().
  [[nodiscard]] std::uint32_t prepare_wait(unsigned client) noexcept {
    return clients_[client].word.fetch_or(1, Orders::kReadWakes) | 1;
  }
  // Sleeps while the wakes are what prepare_wait() returned, or for so long, or for no reason. Returns whether there was
  // one.
  bool wait_for_wake(unsigned client, std::uint32_t wakes, std::uint64_t nanoseconds = sync::kForever) noexcept {
    A::wait_shared(clients_[client].word, wakes, nanoseconds);
    return clients_[client].word.load(std::memory_order_relaxed) != wakes;  // relaxed: a hint
  }
  // Pre: it is a client's slot.
  void wake_client(unsigned client) noexcept {
    // Odd: prepare_wait() was called at least once.
    if ((clients_[client].word.fetch_add(2, Orders::kAddWake) & 1) != 0) A::notify_one_shared(clients_[client].word);
  }

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

  // Takes the next task, see Order at the head. Returns none if no task is ready.
  [[nodiscard]] std::optional<Claim> try_claim(unsigned worker) noexcept {
    // relaxed: where to begin; any entry is right.
    const std::uint64_t cursors = ready_cursors_->load(std::memory_order_relaxed);
    for (unsigned priority = 0; priority < kPriorities; ++priority)
      if (const std::optional<Claim> claim = claim_oldest(priority, cursors, worker)) return claim;
    return std::nullopt;
  }

  // Sleeps until a task may be ready or the table is closed, or for so long, or for no reason. Returns whether no thread has
  // woken the worker; only then may the worker end instead of looking for a task.
  bool wait_for_work(unsigned worker, std::uint64_t nanoseconds = sync::kForever) noexcept {
    atomic<std::uint32_t>& wakes = workers_[worker].wakes;
    atomic<std::uint64_t>& sleepers = sleeping_[worker / 64].bits[0];
    const std::uint32_t seen = wakes.load(Orders::kReadWakes);
    sleepers.fetch_or(base::bit(worker % 64), Orders::kSetSleeping);
    if (!any(ready_, Orders::kRecheck) && !closed()) A::wait_shared(wakes, seen, nanoseconds);
    // relaxed: the bit is a token, which belongs to the thread that clears it.
    return (sleepers.fetch_and(~base::bit(worker % 64), std::memory_order_relaxed) & base::bit(worker % 64)) != 0;
  }
  [[nodiscard]] bool closed() const noexcept { return closed_->load(std::memory_order_relaxed) != 0; }

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
  void count_retried(unsigned worker) noexcept { workers_[worker].retried.fetch_add(1, std::memory_order_relaxed); }
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
    notify_on_->store(static_cast<std::uint32_t>(NotifyOn::kTaskWithoutWorker), Orders::kSetSleeping);
    return any(ready_, Orders::kRecheck);
  }
  // Asks for one notification, of the next task. Returns whether the supervisor may sleep: no task waits or runs, and of the
  // tasks that are over `open(entry, word)` holds for none.
  template <class Open>
  [[nodiscard]] bool prepare_idle(Open open) noexcept;
  [[nodiscard]] bool any_ready() const noexcept { return any(ready_, std::memory_order_relaxed); }

  // Lets each worker end as soon as it finds no task.
  void close() noexcept {
    closed_->store(1, std::memory_order_relaxed);  // relaxed: published by the wakes
    wake_all_workers();
  }

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
  // Ready tasks of which a worker takes the oldest. Their times lie on 8 to 64 cache lines.
  static constexpr unsigned kCompared = 64;
  // Bytes of each input and output area that are kept. Used pages beyond them are given back when the entry was free for a
  // while.
  static constexpr std::uint64_t kKeptBytes = 64 * 1024;

  // Of which tasks the supervisor wants to be notified.
  enum class NotifyOn : std::uint32_t { kNone, kTaskWithoutWorker, kEveryTask };

  // relaxed: it belongs to the word that the caller has read, or is a hint.
  [[nodiscard]] PackedParameters packed(std::uint32_t entry) const noexcept {
    return PackedParameters(entries_[entry].packed.load(std::memory_order_relaxed));
  }

  // The only way in which an entry's state changes. On failure `seen` becomes the state.
  bool change(std::uint32_t i, std::uint64_t& seen, TaskWord to, std::memory_order order) noexcept {
    // relaxed on failure: a caller that acts on the state tries again.
    return entries_[i].state.compare_exchange_strong(seen, to.bits(), order, std::memory_order_relaxed);
  }

  static bool has_bit(const Bits* words, std::uint32_t i) noexcept {
    return (words[i / 64].bits[0].load(std::memory_order_relaxed) & base::bit(i % 64)) != 0;
  }
  // Whether there are bits beyond n.
  template <class Words>
  static bool has_more(const Words* words, std::uint32_t n) noexcept {
    if (n % 64 == 0) return false;
    for (const atomic<std::uint64_t>& bits : words[n / 64].bits)
      if ((bits.load(std::memory_order_relaxed) & ~base::low_bits(n % 64)) != 0) return true;
    return false;
  }
  // Whether any entry has its bit.
  template <class Words>
  [[nodiscard]] bool any(const Words* words, std::memory_order order) const noexcept {
    for (std::uint64_t w = 0; w < Layout::words(shape_.entries); ++w)
      for (const atomic<std::uint64_t>& bits : words[w].bits)
        if (bits.load(order) != 0) return true;
    return false;
  }
  // The word of an entry's ready bit. A bit in the word of another priority harms nothing but the order.
  [[nodiscard]] atomic<std::uint64_t>& ready_word(std::uint32_t i) const noexcept {
    return ready_[i / 64].bits[packed(i).priority()];
  }
  void set_ready(std::uint32_t i) noexcept { ready_word(i).fetch_or(base::bit(i % 64), Orders::kSetBit); }
  [[nodiscard]] bool has_ready(std::uint32_t i) const noexcept {
    return (ready_word(i).load(std::memory_order_relaxed) & base::bit(i % 64)) != 0;
  }

  std::optional<Ticket> take_free(std::uint32_t i, unsigned client) noexcept {
    std::uint64_t seen = entries_[i].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    const TaskWord taken = TaskWord(seen).taken_by(client);
    if (TaskWord(seen).state() != TaskState::kFree || !change(i, seen, taken, Orders::kAcquire)) return std::nullopt;
    return Ticket{i, taken.generation()};
  }

  // Calls `look(i)` for each entry that has its bit, once round the table from `begin`, until it returns true. Clears bits
  // beyond the table, which are damage.
  template <class WordOf, class Look>
  void visit_bits(std::uint32_t begin, WordOf word_of, Look look) const noexcept {
    const auto count = static_cast<std::uint32_t>(Layout::words(shape_.entries));
    // relaxed: clearing the bit decides. A bit that is missed here is found by the check before sleeping.
    const std::uint64_t first = word_of(begin / 64).load(std::memory_order_relaxed);
    const std::uint64_t before_begin = base::low_bits(begin % 64);
    for (std::uint32_t step = 0; step <= count; ++step) {
      const std::uint32_t w = (begin / 64 + step) % count;
      std::uint64_t bits = 0;
      if (step == 0)
        bits = first & ~before_begin;
      else
        bits = step == count ? first & before_begin : word_of(w).load(std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t i = w * 64 + base::lowest_bit(bits);
        if (i >= shape_.entries)
          word_of(w).fetch_and(~base::bit(i % 64), std::memory_order_relaxed);
        else if (look(i))
          return;
      }
    }
  }
  [[nodiscard]] bool clear_bit(atomic<std::uint64_t>& word, std::uint32_t i) noexcept {
    return (word.fetch_and(~base::bit(i % 64), Orders::kClearBit) & base::bit(i % 64)) != 0;
  }

  // The first free entry from the cursor on.
  [[nodiscard]] std::optional<Ticket> find_free(std::uint32_t begin, unsigned client) noexcept {
    std::optional<Ticket> ticket;
    const auto word_of = [this](std::uint32_t w) -> atomic<std::uint64_t>& { return free_[w].bits[0]; };
    visit_bits(begin, word_of, [&](std::uint32_t i) {
      if (clear_bit(free_[i / 64].bits[0], i)) ticket = take_free(i, client);
      return ticket.has_value();
    });
    return ticket;
  }

  // The entry of the oldest ready task of this priority among the next kCompared from `begin` on; none if none is ready.
  [[nodiscard]] std::optional<std::uint32_t> oldest(unsigned priority, std::uint32_t begin) const noexcept {
    std::optional<std::uint32_t> found;
    std::uint64_t found_time = 0;
    unsigned looked_at = 0;
    // relaxed: a hint; it may still be the time of the entry's former task.
    const auto time_of = [this](std::uint32_t i) { return submitted_[i].load(std::memory_order_relaxed); };
    const auto word_of = [&](std::uint32_t w) -> atomic<std::uint64_t>& { return ready_[w].bits[priority]; };
    visit_bits(begin, word_of, [&](std::uint32_t i) {
      if (looked_at == 1) found_time = time_of(*found);  // one alone need not be compared
      if (const std::uint64_t time = looked_at == 0 ? 0 : time_of(i); looked_at == 0 || time < found_time) {
        found = i;
        found_time = time;
      }
      return ++looked_at == kCompared;
    });
    return found;
  }
  // `cursors`: where to begin, 16 bits for each priority.
  [[nodiscard]] std::optional<Claim> claim_oldest(unsigned priority, std::uint64_t cursors, unsigned worker) noexcept {
    const unsigned shift = 16 * priority;
    // Again if another worker was faster.
    while (const std::optional<std::uint32_t> i = oldest(priority, (cursors >> shift & 0xffff) % shape_.entries)) {
      if (!clear_bit(ready_[*i / 64].bits[priority], *i)) continue;
      const std::optional<Claim> taken = claim(*i, worker);
      if (!taken) continue;
      const std::uint64_t others = cursors & ~(std::uint64_t{0xffff} << shift);
      ready_cursors_->store(others | std::uint64_t{(*i + 1) & 0xffff} << shift, std::memory_order_relaxed);
      return taken;
    }
    return std::nullopt;
  }

  // Sets the bit of a ready entry and wakes a sleeping worker. Returns whether one slept.
  bool publish_ready(std::uint32_t i) noexcept {
    set_ready(i);
    return wake_one_worker();
  }
  // relaxed: a hint.
  [[nodiscard]] bool any_sleeps() const noexcept {
    for (std::uint64_t w = 0; w < Layout::words(shape_.workers); ++w)
      if (sleeping_[w].bits[0].load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
  bool wake_one_worker() noexcept {
    for (std::uint64_t w = 0; w < Layout::words(shape_.workers); ++w) {
      std::uint64_t bits = sleeping_[w].bits[0].load(Orders::kReadSleepers);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint64_t one = bits & (~bits + 1);
        // relaxed: the bit is a token; the thread that clears it wakes.
        if ((sleeping_[w].bits[0].fetch_and(~one, std::memory_order_relaxed) & one) == 0) continue;
        const auto worker = static_cast<unsigned>(w * 64 + base::lowest_bit(one));
        if (worker >= shape_.workers) continue;  // damage
        wake_worker(worker);
        return true;
      }
    }
    return false;
  }
  void wake_worker(unsigned worker) noexcept {
    workers_[worker].wakes.fetch_add(1, Orders::kAddWake);
    A::notify_one_shared(workers_[worker].wakes);
  }
  void wake_all_workers() noexcept {
    for (unsigned worker = 0; worker < shape_.workers; ++worker) wake_worker(worker);
  }

  // Wakes one client that waits for an entry, if any does.
  void notify_space() noexcept {
    std::uint32_t seen = space_->load(Orders::kReadSleepers);
    // Odd: a client may sleep. One more is even. relaxed: it only has to differ.
    if ((seen & 1) != 0 &&
        space_->compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed, std::memory_order_relaxed))
      A::notify_one_shared(*space_);
  }

  // Frees the entry if its state is still `word`. Returns whether it was.
  bool free_from(std::uint32_t i, TaskWord word) noexcept {
    std::uint64_t seen = word.bits();
    if (!change(i, seen, word.freed(), Orders::kRelease)) return false;
    free_[i / 64].bits[0].fetch_or(base::bit(i % 64), Orders::kSetBit);
    notify_space();
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
  // Where the parts of the table lie in this process.
  Bits *free_ = nullptr, *sleeping_ = nullptr;
  ReadyBits* ready_ = nullptr;
  atomic<std::uint64_t>* submitted_ = nullptr;  // the time, of each entry's task
  atomic<std::uint32_t>* free_cursor_ = nullptr;
  atomic<std::uint64_t>* ready_cursors_ = nullptr;  // 16 bits for each priority
  atomic<std::uint32_t>* space_ = nullptr;          // a futex; odd: a client may wait for an entry
  atomic<std::uint32_t>* closed_ = nullptr;
  atomic<std::uint32_t>* epoch_ = nullptr;      // supervisors so far
  atomic<std::uint32_t>* notify_on_ = nullptr;  // NotifyOn
  Line<std::uint32_t>* clients_ = nullptr;      // wakes of each: futexes
  Worker* workers_ = nullptr;
  Entry* entries_ = nullptr;
  std::byte* areas_ = nullptr;
  std::uint64_t output_offset_ = 0, area_bytes_ = 0;
  bool guarded_ = false;
};

// The table that processes really share.
using Table = TaskTable<sync::NativeAtomics>;

}  // namespace freehold::process

#include "freehold/process/task_table_slow.hpp"  // IWYU pragma: keep
