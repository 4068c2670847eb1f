// The task table: clients put tasks into shared memory, workers in other processes run them, a supervisor cleans up after
// whoever dies. Any process may be killed between any two instructions, and the rest goes on.
//
// Each entry's state word (task_word.hpp) says who owns the entry; it changes by compare-exchange only, and nothing else
// decides. Bits per entry say where to look: for a free entry, for a task that is ready. A bit is set after the word and
// cleared before it, so a bit may promise too much (who follows it looks at the word) and, when somebody dies in between,
// too little: then sweep() sets it again from the word. Sleepers leave a bit or a flag behind, too; sweep() wakes them all.
//
//   Invariant (at rest, or after a sweep): every free entry has its free bit, every ready one its ready bit.
//
// Order: clients take entries round and round the table. A worker takes a task of the highest priority that has one ready;
// of these the one submitted first among the next kCompared in the table, round and round from where the last one was
// found. So tasks of one priority begin in the order of their submission while at most kCompared of them wait, and none is
// passed by for ever. A task waits for as long as there are tasks of a higher priority.
//
// Buffers: an entry has one input and one output area at fixed places, as large as the largest task may be. In memory of the
// system's (memfd) only pages that were used exist, so there is no allocator of large buffers that could lose one in a
// crash. There is never a second writer: a task goes to another worker only after its former one is known to be dead, and
// its memory with it. An overdue worker is marked in the word first, so that it cannot finish while it is being killed.
//
// Damage: a worker may write anywhere in the table. Nobody believes an index or a length that was read from it before it was
// compared with the shape, of which every process has a copy; find_damage() and reset() are the supervisor's.
//
// Pre of everything: at most one supervisor at a time; recover_*(x) only when x is dead, as waitpid or a closed socket
// tells. Threads: any thread of the client, the worker or the supervisor that its name says. Lock-free, but for those that
// wait. Cost: submit to result, nobody sleeping: 4 compare-exchanges on the entry, 4 operations on bits, each on a shared
// line.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/process/task_word.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

struct TableShape {
  std::uint32_t entries = 256;                              // tasks at a time
  std::uint32_t workers = 4;                                // slots of worker processes, at most TaskWord::kMaxWorkers
  std::uint32_t clients = 64;                               // slots of client processes, at most TaskWord::kMaxClients
  std::uint64_t max_input = 1 << 20, max_output = 1 << 20;  // bytes of one task

  friend constexpr bool operator==(const TableShape&, const TableShape&) noexcept = default;
};

// Why a task has no output.
enum class FailureKind : std::uint32_t {
  kNone,
  kSignal,     // its worker was killed by a signal: value is the number, 0 if somebody else has reaped it
  kExit,       // its worker exited: value is the status
  kDeadline,   // it ran for longer than it may: value is the limit in milliseconds
  kMemory,     // its worker held more memory than it may: value is the limit in MiB
  kComponent,  // the component refused it: value is what it returned
  kNoWorker,   // no worker could be started, or the pool was shut down
  kCorrupt,    // something has written into the table: what is known of the task is not to be believed
  kRefused,    // there is no task: value is the SubmitError (client.hpp) of submit()
};
struct Failure {
  FailureKind kind = FailureKind::kNone;
  std::int32_t value = 0;
  friend constexpr bool operator==(const Failure&, const Failure&) noexcept = default;
};

// What submit() did.
enum class Submitted : std::uint8_t {
  kNo,  // the entry was taken from its client
  kYes,
  kNotifySupervisor,  // yes, and the supervisor wants to know
};

// Which of two tasks that wait begins first.
enum class Priority : std::uint8_t { kHigh, kNormal, kLow };
inline constexpr unsigned kPriorities = 3;

// Whether a task that its component refuses runs again.
struct RetryPolicy {
  static constexpr unsigned kCodes = 4;
  std::array<std::int32_t, kCodes> codes{};  // for which of the component's codes; all 0: for each
  std::uint32_t attempts = 0;                // in all, those included whose workers died; 0: it does not
  std::uint32_t delay_ms = 0;                // before the next one
};

// What a task may take; 0 is no limit, or the supervisor's default.
struct TaskParameters {
  std::uint64_t limit = 0;      // nanoseconds for which it may run, each attempt
  std::uint64_t expires = 0;    // the time at which it has to be over
  std::uint32_t within_ms = 0;  // from its submission until then, for the reason
  std::uint32_t attempts = 0;
  Priority priority = Priority::kNormal;
  std::uint64_t submitted = 0;  // the time: which of two tasks of one priority is older
  RetryPolicy retry{};
};

// A task of a client, while the client has not taken its result.
struct Ticket {
  std::uint32_t entry = 0;
  std::uint32_t generation = 0;
};
[[nodiscard]] constexpr std::uint64_t id_of(Ticket ticket) noexcept {
  return std::uint64_t{ticket.generation} << 32 | ticket.entry;
}
// A task that a worker runs.
struct Claim {
  std::uint32_t entry = 0;
  TaskWord word;
};

struct TaskTableOrders {
  // The state word.
  // acquire: pairs with kRelease; who takes an entry sees what its former owner wrote into it.
  static constexpr std::memory_order kAcquire = std::memory_order_acquire;
  // release: pairs with kAcquire; publishes input, output or failure, and for a freed entry that they were read.
  static constexpr std::memory_order kRelease = std::memory_order_release;

  // The bits, and sleeping. Who sets a bit asks afterwards who sleeps; who goes to sleep says so and then looks at the
  // bits. All four seq_cst, or both could miss the other (store buffering).
  // release, too: the entry's word is seen by whoever clears the bit.
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
  template <class T>
  using var = typename A::template var<T>;

 public:
  static constexpr std::uint64_t kMagic = 0x656c626174687266;  // "frhtable"
  static constexpr std::uint32_t kVersion = 4;
  static constexpr std::uint64_t kKilled = 1;  // the limit of a task that kill() has dropped

  // Bytes that a table of this shape takes, areas included; 0 if the shape is impossible.
  [[nodiscard]] static std::uint64_t bytes(const TableShape& shape) noexcept {
    if (shape.entries == 0 || shape.entries > kMaxEntries || shape.workers == 0 || shape.workers > TaskWord::kMaxWorkers ||
        shape.clients == 0 || shape.clients > TaskWord::kMaxClients || shape.max_input == 0 || shape.max_output == 0 ||
        shape.max_input > kMaxArea || shape.max_output > kMaxArea)
      return 0;
    return Layout(shape).end;
  }

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
  // The version of what is there; none if it is no table.
  [[nodiscard]] static std::optional<std::uint32_t> version_of(const void* memory, std::uint64_t size) noexcept {
    if (size < sizeof(Header)) return std::nullopt;
    Header header;
    std::memcpy(&header, memory, sizeof header);
    return header.magic == kMagic ? std::optional(header.version) : std::nullopt;
  }
  [[nodiscard]] static bool valid(const void* memory, std::uint64_t size) noexcept {
    return shape_of(memory, size).has_value();
  }

  // A process's view of the table. Pre: valid(memory, its size); the memory outlives the view, and nobody writes wildly yet.
  explicit TaskTable(void* memory) noexcept : TaskTable(memory, static_cast<Header*>(memory)->shape) {}
  // The same with what shape_of() has said.
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
  // Calls `guard(address)` for each page that lies between two regions, for no use.
  template <class Guard>
  void for_each_guard(Guard guard) const {
    guard(areas_ - kPage);
    for (std::uint32_t i = 0; guarded_ && i < shape_.entries; ++i) {
      guard(output(i) - kPage);
      guard(input(i) + area_bytes_ - kPage);
    }
  }

  // ---- the client

  // Takes a free entry to fill. Returns none if the table is full.
  [[nodiscard]] std::optional<Ticket> try_acquire(unsigned client) noexcept {
    // relaxed, the cursor: where to begin; any entry is right. Of large ones the first, whose pages are there, since the
    // same few entries are used all the time.
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
  // Whether tasks may use so many pages that these are given back when they are not used.
  [[nodiscard]] bool is_large() const noexcept { return area_bytes_ > 2 * kKeptBytes; }
  // Calls `purge(offset, bytes)`, from the table's beginning, for what an entry may have used and need not keep. Pre: the
  // caller has acquired it.
  template <class Purge>
  void purge(std::uint32_t entry, Purge purge) const {
    const std::uint64_t area = areas_offset() + entry * area_bytes_;
    if (shape_.max_input > kKeptBytes) purge(area + kKeptBytes, base::align_up(shape_.max_input, kPage) - kKeptBytes);
    if (shape_.max_output > kKeptBytes)
      purge(area + output_offset_ + kKeptBytes, base::align_up(shape_.max_output, kPage) - kKeptBytes);
  }
  [[nodiscard]] TaskWord word(std::uint32_t entry) const noexcept {
    return TaskWord(entries_[entry].state.load(std::memory_order_relaxed));  // relaxed: a look
  }

  // Sleeps until an entry may be free, or for so long, or for no reason.
  void wait_for_space(std::uint64_t nanoseconds = sync::kForever) noexcept {
    const std::uint32_t seen = space_->fetch_or(1, Orders::kSetSleeping) | 1;
    if (any(free_, Orders::kRecheck)) return;
    A::wait_shared(*space_, seen, nanoseconds);
    // The caller took the flag away when it woke us, and cannot know whether others sleep.
    space_->fetch_or(1, Orders::kSetSleeping);
  }
  // After an entry was found at last: another one may be free, of which nobody was told.
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
    entry.more.store(More(parameters).bits, std::memory_order_relaxed);
    submitted_[ticket.entry].store(parameters.submitted, std::memory_order_relaxed);
    if (parameters.retry.attempts != 0) {
      entry.delay_ms.store(parameters.retry.delay_ms, std::memory_order_relaxed);
      for (unsigned i = 0; i < RetryPolicy::kCodes; ++i)
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

  // Whoever ends the task adds to its client's wakes, which prepare_wait() reads. Nothing happens if it is over.
  void ask_for_wake(Ticket ticket) noexcept {
    for (std::optional<TaskWord> word; (word = look(ticket)) && !word->is_over() && word->state() != TaskState::kTaking;) {
      std::uint64_t seen = word->bits();
      // relaxed: asks to be woken; nothing is read or published.
      if (word->waited() || change(ticket.entry, seen, word->with_waited(), std::memory_order_relaxed)) return;
    }
  }
  // Tasks that end after this call change the client's wakes, and wake wait_for_wake(). What has ended before it is seen.
  // A read-modify-write, so that of this and the adding one comes first.
  [[nodiscard]] std::uint32_t prepare_wait(unsigned client) noexcept {
    return clients_[client].word.fetch_or(1, Orders::kReadWakes) | 1;
  }
  // Sleeps while the wakes are as prepare_wait() has said, or for so long, or for no reason. Returns whether there was one.
  bool wait_for_wake(unsigned client, std::uint32_t wakes, std::uint64_t nanoseconds = sync::kForever) noexcept {
    A::wait_shared(clients_[client].word, wakes, nanoseconds);
    return clients_[client].word.load(std::memory_order_relaxed) != wakes;  // relaxed: a hint
  }
  // Pre: it is a client's slot.
  void wake_client(unsigned client) noexcept {
    // Odd: somebody has listened, ever.
    if ((clients_[client].word.fetch_add(2, Orders::kAddWake) & 1) != 0) A::notify_one_shared(clients_[client].word);
  }

  // The ticket of the client's task in this entry, if that is over.
  [[nodiscard]] std::optional<Ticket> result_of(std::uint32_t entry, unsigned client) const noexcept {
    const TaskWord word(entries_[entry].state.load(std::memory_order_relaxed));  // relaxed: taking it decides
    if (!word.is_over() || word.client() != client) return std::nullopt;
    return Ticket{entry, word.generation()};
  }
  // Takes the result of a task that is over; release() gives the entry back. Returns false to all but one caller.
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

  // Ends the client's task wherever it stands, filling and taking included: the entry is free again, or will be when its
  // worker has done. Returns false if it was the client's no more.
  bool drop(Ticket ticket) noexcept {
    for (;;) {
      const std::optional<TaskWord> word = look(ticket);
      if (!word || word->abandoned()) return false;
      if (drop_from(ticket.entry, *word)) return true;
    }
  }

  // drop(), and a worker that runs the task is to be killed: it is overdue from now on. Pre: nobody else drops the task.
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

  // Sleeps until a task may be ready or the table is closed, or for so long, or for no reason. Returns whether nobody has
  // woken the worker meanwhile; only then may it end instead of looking for a task.
  bool wait_for_work(unsigned worker, std::uint64_t nanoseconds = sync::kForever) noexcept {
    atomic<std::uint32_t>& wakes = workers_[worker].wakes;
    atomic<std::uint64_t>& sleepers = sleeping_[worker / 64].bits[0];
    const std::uint32_t seen = wakes.load(Orders::kReadWakes);
    sleepers.fetch_or(base::bit(worker % 64), Orders::kSetSleeping);
    if (!any(ready_, Orders::kRecheck) && !closed()) A::wait_shared(wakes, seen, nanoseconds);
    // relaxed: the bit is a token; whoever clears it has it.
    return (sleepers.fetch_and(~base::bit(worker % 64), std::memory_order_relaxed) & base::bit(worker % 64)) != 0;
  }
  [[nodiscard]] bool closed() const noexcept { return closed_->load(std::memory_order_relaxed) != 0; }

  // The task is over, with so many bytes of output or with a failure. Returns false if the supervisor is about to kill this
  // worker, or has believed it dead: it must not touch the task any more, and must exit.
  bool complete(const Claim& claim, std::uint64_t output_bytes, Failure failure = {}) noexcept {
    std::uint64_t seen = claim.word.bits();
    entries_[claim.entry].output_bytes.store(output_bytes);
    entries_[claim.entry].failure.store(failure);
    const TaskState state = failure.kind == FailureKind::kNone ? TaskState::kDone : TaskState::kFailed;
    return finish(claim.entry, TaskWord(seen), state);
  }

  // The component has refused the task with this code. If its client wants another run for that, the task is ready again,
  // or will be after its delay. Returns kNo if it is to be completed; what complete() says of false goes for kRevoked.
  enum class Retried : std::uint8_t { kNo, kYes, kRevoked };
  Retried retry(const Claim& claim, std::int32_t code, std::uint64_t now) noexcept {
    Entry& entry = entries_[claim.entry];
    if (!wants_retry(entry, claim.word, code)) return Retried::kNo;
    // relaxed, all: published by the word.
    const std::uint64_t delay = std::uint64_t{entry.delay_ms.load(std::memory_order_relaxed)} * 1'000'000;
    entry.started.store(0, std::memory_order_relaxed);
    entry.due.store(now + delay, std::memory_order_relaxed);
    for (std::uint64_t seen = claim.word.bits();;) {
      const TaskWord word(seen);
      if (!word.same_attempt(claim.word) || word.overdue()) return Retried::kRevoked;
      if (word.abandoned()) {
        if (free_from(claim.entry, word)) return Retried::kYes;
        seen = entries_[claim.entry].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
        continue;
      }
      const TaskWord next = delay == 0 ? word.next_attempt() : word.next_attempt().with(TaskState::kDelayed);
      if (!change(claim.entry, seen, next, Orders::kRelease)) continue;
      if (delay == 0) publish_ready(claim.entry);
      return Retried::kYes;
    }
  }

  // When the claim's task began, in nanoseconds of the clock that the supervisor uses. A hint for find_overdue().
  void began(const Claim& claim, std::uint64_t now) noexcept {
    entries_[claim.entry].started.store(now, std::memory_order_relaxed);
  }

  // The worker says which process it is before it takes its first task. Returns false if another supervisor has taken over
  // since `epoch`: then it must end, because nobody would know when it dies.
  [[nodiscard]] bool enter(unsigned worker, std::uint64_t identity, std::uint32_t epoch) noexcept {
    workers_[worker].identity.store(identity, Orders::kSetSleeping);
    return epoch_->load(Orders::kRecheck) == epoch;
  }
  // A supervisor begins. Afterwards identity() is every process that may yet touch the table as a worker.
  std::uint32_t new_epoch() noexcept { return epoch_->fetch_add(1, Orders::kSetBit) + 1; }
  [[nodiscard]] std::uint64_t identity(unsigned worker) const noexcept {
    return workers_[worker].identity.load(Orders::kReadSleepers);
  }
  void leave(unsigned worker) noexcept {
    workers_[worker].identity.store(0, std::memory_order_relaxed);  // relaxed: by the supervisor, for the next one
  }

  // For the supervisor and the stats; relaxed: they publish nothing.
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

  // ---- the supervisor

  // The worker is dead (or, kSupervisor, the former supervisor): its tasks go to the others, or fail if this was attempt
  // number `attempts`. Calls `held(entry, word, whether it goes to another)` for each task that it held, before anybody else
  // can see what becomes of it: a client that has the result finds it counted.
  template <class Held>
  void recover_worker(unsigned worker, Failure reason, unsigned attempts, Held held) noexcept {
    if (worker < shape_.workers) {
      // relaxed: a sleeper's bit, and it sleeps no more.
      sleeping_[worker / 64].bits[0].fetch_and(~base::bit(worker % 64), std::memory_order_relaxed);
    }
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (word.worker() != worker) continue;
      if (word.state() == TaskState::kRunning) {
        const bool goes_on = !word.abandoned() && word.attempt() + 1 < attempts_of(i, attempts);
        held(i, word, goes_on);
        requeue_or_fail(i, word, reason, attempts);
      } else if (word.is_over()) {
        wake_waiter(i, word);  // it may have died before it did
      }
    }
    sweep();
  }
  // The same. Returns how many tasks it held.
  unsigned recover_worker(unsigned worker, Failure reason, unsigned attempts) noexcept {
    unsigned held = 0;
    recover_worker(worker, reason, attempts, [&held](std::uint32_t, TaskWord, bool) { ++held; });
    return held;
  }

  // The client process is dead: all its tasks are dropped.
  void recover_client(unsigned client) noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      for (;;) {
        const TaskWord word(entries_[i].state.load(Orders::kAcquire));
        if (word.state() == TaskState::kFree || word.client() != client || word.abandoned()) break;
        if (drop_from(i, word)) break;
      }
    }
    sweep();
  }

  // Sets every bit that a dead process has left unset and wakes whoever it has left asleep.
  void sweep() noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskState state = TaskWord(entries_[i].state.load(Orders::kAcquire)).state();
      if (state == TaskState::kFree) free_[i / 64].bits[0].fetch_or(base::bit(i % 64), Orders::kSetBit);
      if (state == TaskState::kReady) set_ready(i);
    }
    wake_all_workers();
    space_->fetch_add(2, std::memory_order_relaxed);  // relaxed: only has to differ; the flag stays
    A::notify_all_shared(*space_);
  }

  // The worker's task that has run out of time, and for which it has to be killed: it cannot finish any more. It runs since
  // `since(claim, started, limit)`; 0: not yet. `started`: when the worker says that it began, 0 if it has not.
  template <class Since>
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now, Since since) noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (word.state() != TaskState::kRunning || word.overdue()) continue;
      // relaxed: both belong to the word that is still there when it is marked, or marking fails.
      const std::uint64_t limit = entries_[i].limit.load(std::memory_order_relaxed);
      if (expired(i, now) && mark_for_kill(Claim{i, word})) return Claim{i, word};
      if (limit == 0) continue;
      const std::uint64_t begun = since(Claim{i, word}, entries_[i].started.load(std::memory_order_relaxed), limit);
      if (begun == 0 || now < begun || now - begun <= limit) continue;
      if (mark_for_kill(Claim{i, word})) return Claim{i, word};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Claim> find_overdue(std::uint64_t now) noexcept {
    return find_overdue(now, [](const Claim&, std::uint64_t started, std::uint64_t) { return started; });
  }
  // Tasks whose delay is over are ready again.
  void begin_due(std::uint64_t now) noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      // relaxed: it belongs to the word that is still there when it is changed.
      if (word.state() != TaskState::kDelayed || entries_[i].due.load(std::memory_order_relaxed) > now) continue;
      // Again when the client asked to be woken meanwhile.
      for (std::uint64_t seen = word.bits(); TaskWord(seen).same_attempt(word);)
        if (change(i, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease)) {
          publish_ready(i);
          break;
        }
    }
  }
  // Tasks that still wait when they have to be over fail. Running ones are found by find_overdue().
  void fail_expired(std::uint64_t now) noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (!word.waits() || !expired(i, now)) continue;
      // Not the task that may be there by now.
      std::uint64_t seen = word.bits();
      const TaskWord taken = word.with(TaskState::kRunning).with_worker(TaskWord::kSupervisor);
      if (!change(i, seen, taken, Orders::kAcquire)) continue;
      complete({i, taken}, 0, {FailureKind::kDeadline, static_cast<std::int32_t>(within_ms(i))});
    }
  }
  // Whether the entry's task has to be over. relaxed: it belongs to a word that is still there when it is changed.
  [[nodiscard]] bool expired(std::uint32_t entry, std::uint64_t now) const noexcept {
    const std::uint64_t expires = entries_[entry].expires.load(std::memory_order_relaxed);
    return expires != 0 && now > expires;
  }
  [[nodiscard]] std::uint32_t within_ms(std::uint32_t entry) const noexcept { return more(entry).within_ms(); }

  // Announces each task once more that waits for too long, as `stuck(entry, word)` says: the worker that was woken, or that
  // cleared its bit, may have been stopped. Wakes its client once more if it is over: its worker may have been stopped
  // before.
  template <class Stuck>
  void help_stuck(Stuck stuck) noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      // While all are busy it only has to be found.
      if (word.state() == TaskState::kReady && stuck(i, word) && (!has_ready(i) || any_sleeps())) publish_ready(i);
      if (word.is_over() && stuck(i, word)) wake_waiter(i, word);
    }
  }
  // Marks the running task so that its worker cannot finish it. Returns false if it has.
  bool mark_for_kill(const Claim& claim) noexcept {
    std::uint64_t seen = claim.word.bits();
    // relaxed: nothing is read or published; the worker's compare-exchange fails.
    return change(claim.entry, seen, claim.word.with_overdue(), std::memory_order_relaxed);
  }
  // What the worker runs now, if anything.
  [[nodiscard]] std::optional<Claim> running(unsigned worker) const noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (word.state() == TaskState::kRunning && word.worker() == worker) return Claim{i, word};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::uint64_t limit(std::uint32_t entry) const noexcept {
    return entries_[entry].limit.load(std::memory_order_relaxed);
  }

  // What shows that something has written into the table that should not have; null if nothing does. `known` has what the
  // supervisor knows by itself: closed(), epoch(), is_live(worker), is_connected(client), lasts(entry, word): it was so at a
  // former look, has_another(worker): that was asked about it before.
  template <class Known>
  [[nodiscard]] const char* find_damage(Known& known) const noexcept {
    if (header_->magic != kMagic || header_->version != kVersion || header_->shape != shape_ ||
        header_->bytes != bytes(shape_))
      return "its header";
    if (closed_->load(std::memory_order_relaxed) != (known.closed() ? 1u : 0u)) return "whether it is closed";
    if (epoch_->load(std::memory_order_relaxed) != known.epoch()) return "its epoch";
    if (has_more(free_, shape_.entries) || has_more(ready_, shape_.entries) || has_more(sleeping_, shape_.workers))
      return "its bits";
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (word.state() == TaskState::kFree) continue;
      if (word.client() >= shape_.clients) return "a task's client";
      if (!word.abandoned() && !known.is_connected(word.client())) return "a task's client";
      if (word.state() != TaskState::kRunning) continue;
      const unsigned worker = word.worker();
      if (worker >= shape_.workers) return "a task's worker";
      if (!known.lasts(i, word)) continue;
      if (!known.is_live(worker) || has_bit(sleeping_, worker) || known.has_another(worker)) return "a task's worker";
    }
    return nullptr;
  }

  // Makes the table anew after damage: every task is its client's no more. `generation`: of the entries, unlikely to be that
  // of a ticket. Pre: no worker lives.
  void reset(std::uint32_t generation, std::uint32_t epoch) noexcept {
    header_->magic = kMagic;
    header_->version = kVersion;
    header_->shape = shape_;
    header_->bytes = bytes(shape_);
    const auto clear = [](auto* words, std::uint64_t count) {
      for (std::uint64_t w = 0; w < count; ++w)
        for (auto& bits : words[w].bits) bits.store(0, std::memory_order_relaxed);
    };
    clear(free_, Layout::words(shape_.entries));
    clear(ready_, Layout::words(shape_.entries));
    clear(sleeping_, Layout::words(shape_.workers));
    for (unsigned worker = 0; worker < shape_.workers; ++worker) {
      set_up(worker, false);
      leave(worker);
    }
    closed_->store(0, std::memory_order_relaxed);
    epoch_->store(epoch, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      entries_[i].state.store(TaskWord(std::uint64_t{generation} << 32).bits(), Orders::kRelease);
      A::notify_all_shared(entries_[i].state);
    }
    for (unsigned client = 0; client < shape_.clients; ++client) wake_client(client);
    sweep();
  }

  // Every task that waits for a worker, or for its time, fails: there will be none.
  void fail_ready(Failure reason) noexcept {
    begin_due(~std::uint64_t{0});
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const std::optional<Claim> task = claim(i, TaskWord::kSupervisor);
      if (task) complete(*task, 0, reason);
    }
  }

  // The supervisor wants to be told, once, when a task finds no worker asleep. Returns whether a task is ready already.
  [[nodiscard]] bool request_notify() noexcept {
    notify_on_->store(static_cast<std::uint32_t>(NotifyOn::kTaskWithoutWorker), Orders::kSetSleeping);
    return any(ready_, Orders::kRecheck);
  }
  // It wants to be told, once, of the next task. Returns whether there is none now, neither waiting nor running, nor one
  // that is over and about which `open(entry, word)` says that it has to be helped yet.
  template <class Open>
  [[nodiscard]] bool prepare_idle(Open open) noexcept {
    const std::uint32_t former =
        notify_on_->exchange(static_cast<std::uint32_t>(NotifyOn::kEveryTask), Orders::kSetSleeping);
    // A task whose bit somebody has cleared meanwhile shows in its word: the last look is an acquire load, too.
    bool none = !any(ready_, Orders::kRecheck);
    for (std::uint32_t i = 0; none && i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      none = !word.waits() && word.state() != TaskState::kRunning && !(word.is_over() && open(i, word));
    }
    if (!none)
      notify_on_->store(former,
                        std::memory_order_relaxed);  // relaxed: a client that has seen the other one notifies once more
    return none;
  }
  [[nodiscard]] bool any_ready() const noexcept { return any(ready_, std::memory_order_relaxed); }

  // The workers end when they have nothing to do.
  void close() noexcept {
    closed_->store(1, std::memory_order_relaxed);  // relaxed: published by the wakes
    wake_all_workers();
  }

  // Entries in this stage; exact at rest.
  [[nodiscard]] std::uint32_t count(TaskState state) const noexcept {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < shape_.entries; ++i)
      n += TaskWord(entries_[i].state.load(std::memory_order_relaxed)).state() == state ? 1 : 0;
    return n;
  }

  [[nodiscard]] std::uint32_t waiting() const noexcept { return count(TaskState::kReady) + count(TaskState::kDelayed); }

  // Entries that are the client's; too many or too few while it takes and drops some.
  [[nodiscard]] std::uint32_t count_of(unsigned client) const noexcept {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(std::memory_order_relaxed));
      n += word.state() != TaskState::kFree && word.client() == client && !word.abandoned() ? 1 : 0;
    }
    return n;
  }

  // Tasks that wait or run, or are about to; of one client, or of all.
  [[nodiscard]] std::uint32_t open_of(std::optional<unsigned> client) const noexcept {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskWord word(entries_[i].state.load(std::memory_order_relaxed));
      const bool open = word.state() == TaskState::kFilling || word.waits() || word.state() == TaskState::kRunning;
      n += open && (!client || word.client() == *client) ? 1 : 0;
    }
    return n;
  }

  // The invariant at the head, at rest.
  void check_invariants() const noexcept {
    for (std::uint32_t i = 0; i < shape_.entries; ++i) {
      const TaskState state = TaskWord(entries_[i].state.load(std::memory_order_relaxed)).state();
      FREEHOLD_ASSERT(state != TaskState::kFree || has_bit(free_, i));
      FREEHOLD_ASSERT(state != TaskState::kReady || has_ready(i));
    }
  }

 private:
  static constexpr std::uint32_t kMaxEntries = 1 << 16;
  static constexpr std::uint64_t kMaxArea = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kPage = 4096;
  // Ready tasks of which a worker takes the oldest. Their times lie on 8 to 64 cache lines.
  static constexpr unsigned kCompared = 64;
  // Of each input and output area. More, where it was used, is given back when the entry is free for a while.
  static constexpr std::uint64_t kKeptBytes = 64 * 1024;

  // Of which tasks the supervisor wants to be told.
  enum class NotifyOn : std::uint32_t { kNone, kTaskWithoutWorker, kEveryTask };

  // Nobody writes after create().
  struct alignas(base::kCacheLine) Header {
    std::uint64_t magic;
    std::uint32_t version;
    TableShape shape;
    std::uint64_t bytes;
  };
  template <unsigned kWords>
  struct alignas(base::kCacheLine) BitsOf {
    atomic<std::uint64_t> bits[kWords];
  };
  using Bits = BitsOf<1>;
  using ReadyBits = BitsOf<kPriorities>;
  template <class T>
  struct alignas(base::kCacheLine) Line {
    atomic<T> word;
  };
  struct alignas(base::kCacheLine) Worker {
    atomic<std::uint32_t> wakes;     // a futex: one more for each time that the worker is woken
    atomic<std::uint32_t> up;        // whether its process has come as far as its loop
    atomic<std::uint64_t> ended;     // tasks that it has completed; statistics
    atomic<std::uint64_t> retried;   // that it has given back; statistics
    atomic<std::uint64_t> identity;  // of its process, 0: none
  };
  struct alignas(base::kCacheLine) Entry {
    atomic<std::uint64_t> state;
    // Written by the entry's owner.
    var<std::uint64_t> input_bytes, output_bytes;
    var<Failure> failure;
    // Hints for the supervisor, nanoseconds. Whoever makes the entry ready sets `started` to 0, so that nobody takes the
    // time of the former task, or attempt, for this one's.
    atomic<std::uint64_t> limit, started;
    atomic<std::uint64_t> expires;  // the time
    atomic<std::uint64_t> more;     // More
    // Used only where a component's refusal may be followed by another run.
    alignas(base::kCacheLine) atomic<std::uint64_t> due;  // the time at which it is ready again
    atomic<std::uint32_t> delay_ms;
    atomic<std::int32_t> codes[RetryPolicy::kCodes];
  };
  // Of TaskParameters, in one word: bits 0…7 attempts, 8…9 priority, 10…15 attempts when the component refuses, 32…63
  // within_ms.
  struct More {
    explicit More(std::uint64_t word) noexcept : bits(word) {}
    explicit More(const TaskParameters& parameters) noexcept
        : bits(std::min(parameters.attempts, 255u) | static_cast<std::uint64_t>(parameters.priority) << 8 |
               std::uint64_t{std::min(parameters.retry.attempts, TaskWord::kMaxAttempts)} << 10 |
               std::uint64_t{parameters.within_ms} << 32) {}
    [[nodiscard]] unsigned attempts() const noexcept { return bits & 255; }
    // Less than kPriorities, whatever somebody has written there.
    [[nodiscard]] unsigned priority() const noexcept { return std::min<unsigned>(bits >> 8 & 3, kPriorities - 1); }
    [[nodiscard]] unsigned retry_attempts() const noexcept { return bits >> 10 & 63; }
    [[nodiscard]] std::uint32_t within_ms() const noexcept { return static_cast<std::uint32_t>(bits >> 32); }
    std::uint64_t bits;
  };
  // relaxed: it belongs to the word that the caller has read, or is a hint.
  [[nodiscard]] More more(std::uint32_t entry) const noexcept {
    return More(entries_[entry].more.load(std::memory_order_relaxed));
  }

  static_assert(sizeof(Header) == base::kCacheLine && sizeof(Bits) == base::kCacheLine &&
                sizeof(Line<std::uint32_t>) == base::kCacheLine);
  static_assert(sizeof(Worker) == base::kCacheLine && sizeof(Entry) == 2 * base::kCacheLine);
  static_assert(sizeof(ReadyBits) == base::kCacheLine);

  // Offsets from the table's beginning.
  struct Layout {
    explicit Layout(const TableShape& shape) noexcept
        : free(sizeof(Header)),
          ready(free + words(shape.entries) * sizeof(Bits)),
          submitted(ready + words(shape.entries) * sizeof(ReadyBits)),
          sleeping(submitted + base::align_up(shape.entries * sizeof(atomic<std::uint64_t>), base::kCacheLine)),
          lines(sleeping + words(shape.workers) * sizeof(Bits)),
          clients(lines + 6 * sizeof(Line<std::uint32_t>)),
          workers(clients + shape.clients * sizeof(Line<std::uint32_t>)),
          entries(workers + shape.workers * sizeof(Worker)),
          areas(base::align_up(entries + shape.entries * sizeof(Entry), kPage) + kPage),
          guarded(area_alignment(shape) == kPage && shape.entries <= kMostGuarded),
          output_offset(base::align_up(shape.max_input, area_alignment(shape)) + (guarded ? kPage : 0)),
          area_bytes(output_offset + base::align_up(shape.max_output, area_alignment(shape)) + (guarded ? kPage : 0)),
          end(areas + base::align_up(area_bytes * shape.entries, kPage)) {}
    static std::uint64_t words(std::uint32_t n) noexcept { return base::ceil_div(n, 64); }
    // Each guard costs a worker two mappings, of which it may have 65,530.
    static constexpr std::uint32_t kMostGuarded = 8192;
    // Small tasks lie side by side; large ones begin at a page, so that what they used can be given back, with a page after
    // them that workers cannot touch.
    static std::uint64_t area_alignment(const TableShape& shape) noexcept {
      return shape.max_input + shape.max_output <= kPage ? base::kCacheLine : kPage;
    }
    std::uint64_t free, ready, submitted, sleeping, lines, clients, workers, entries, areas;
    bool guarded;
    std::uint64_t output_offset, area_bytes, end;
  };

  // The one way in which an entry's state changes. On failure `seen` is what it is.
  bool change(std::uint32_t i, std::uint64_t& seen, TaskWord to, std::memory_order order) noexcept {
    // relaxed on failure: whoever acts on what it sees tries again.
    return entries_[i].state.compare_exchange_strong(seen, to.bits(), order, std::memory_order_relaxed);
  }

  static bool has_bit(const Bits* words, std::uint32_t i) noexcept {
    return (words[i / 64].bits[0].load(std::memory_order_relaxed) & base::bit(i % 64)) != 0;
  }
  // Whether there are bits beyond n.
  template <unsigned kWords>
  static bool has_more(const BitsOf<kWords>* words, std::uint32_t n) noexcept {
    for (unsigned k = 0; n % 64 != 0 && k < kWords; ++k)
      if ((words[n / 64].bits[k].load(std::memory_order_relaxed) & ~base::low_bits(n % 64)) != 0) return true;
    return false;
  }
  template <unsigned kWords>
  [[nodiscard]] bool any(const BitsOf<kWords>* words, std::memory_order order) const noexcept {
    for (std::uint64_t w = 0; w < Layout::words(shape_.entries); ++w)
      for (const atomic<std::uint64_t>& bits : words[w].bits)
        if (bits.load(order) != 0) return true;
    return false;
  }
  // The word of an entry's ready bit. A bit in a priority's word that is not the entry's does no harm but to the order.
  [[nodiscard]] atomic<std::uint64_t>& ready_word(std::uint32_t i) const noexcept {
    return ready_[i / 64].bits[more(i).priority()];
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

  // Calls `look(i)` for each entry below `entries` that has its bit, once round the table from `begin`, until it returns
  // true. Clears bits beyond the table, which are damage.
  template <class WordOf, class Look>
  void visit_bits(std::uint32_t begin, WordOf word_of, Look look) const noexcept {
    const auto count = static_cast<std::uint32_t>(Layout::words(shape_.entries));
    // relaxed: clearing the bit decides. What is missed here is found by the last look before sleeping.
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

  // The entry of the oldest task of this priority among the next kCompared from `begin` on; none if none is ready.
  [[nodiscard]] std::optional<std::uint32_t> oldest(unsigned priority, std::uint32_t begin) const noexcept {
    std::optional<std::uint32_t> found;
    std::uint64_t found_time = 0;
    unsigned looked_at = 0;
    // relaxed: a hint; a time may be that of the entry's former task.
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
    // Again when another worker was faster.
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

  // The entry is ready: it gets its bit, and a worker that sleeps is woken.
  // Returns whether one was.
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
        // relaxed: the bit is a token; whoever clears it wakes.
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
    // Odd: somebody may sleep. One more is even. relaxed: it only has to differ.
    if ((seen & 1) != 0 &&
        space_->compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed, std::memory_order_relaxed))
      A::notify_one_shared(*space_);
  }

  // Frees the entry if it is still as `word` says. Returns whether it was.
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
    return change(i, seen, word.with_abandoned(), std::memory_order_relaxed);  // relaxed: a wish; publishes nothing
  }

  std::optional<Claim> claim(std::uint32_t i, unsigned worker) noexcept {
    std::uint64_t seen = entries_[i].state.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    while (TaskWord(seen).state() == TaskState::kReady) {
      const TaskWord taken = TaskWord(seen).with(TaskState::kRunning).with_worker(worker);
      // Again when the client asked to be woken meanwhile.
      if (change(i, seen, taken, Orders::kAcquire)) return Claim{i, taken};
    }
    return std::nullopt;
  }

  // The entry's client waits for its end, which has come.
  void wake_waiter(std::uint32_t i, TaskWord word) noexcept {
    A::notify_all_shared(entries_[i].state);
    if (word.client() < shape_.clients) wake_client(word.client());  // else damage
  }

  // From running to over, or to free if the client has gone. `word` is the attempt that ends.
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

  [[nodiscard]] bool wants_retry(const Entry& entry, TaskWord word, std::int32_t code) const noexcept {
    // relaxed, all: published by the word that the worker has taken.
    if (word.attempt() + 1 >= More(entry.more.load(std::memory_order_relaxed)).retry_attempts()) return false;
    bool each = true;
    for (const atomic<std::int32_t>& one : entry.codes) {
      const std::int32_t wanted = one.load(std::memory_order_relaxed);
      if (wanted == code) return true;
      each = each && wanted == 0;
    }
    return each;
  }

  // The task's own number, or the pool's.
  [[nodiscard]] unsigned attempts_of(std::uint32_t entry, unsigned attempts) const noexcept {
    const unsigned own = more(entry).attempts();
    return own != 0 ? std::min(own, TaskWord::kMaxAttempts) : attempts;
  }
  // From running by a dead worker to ready again, failed, or free.
  void requeue_or_fail(std::uint32_t i, TaskWord word, Failure reason, unsigned attempts) noexcept {
    attempts = attempts_of(i, attempts);
    for (;; word = TaskWord(entries_[i].state.load(Orders::kAcquire))) {
      std::uint64_t seen = word.bits();
      if (word.abandoned()) {
        if (free_from(i, word)) return;
      } else if (word.attempt() + 1 < attempts) {
        entries_[i].started.store(0, std::memory_order_relaxed);  // relaxed: published by the word
        if (!change(i, seen, word.next_attempt(), Orders::kRelease)) continue;
        publish_ready(i);
        return;
      } else {
        entries_[i].failure.store(reason);
        if (!change(i, seen, word.with(TaskState::kFailed).without_flags(), Orders::kRelease)) continue;
        wake_waiter(i, word);
        return;
      }
    }
  }

  const TableShape shape_;
  Header* const header_;
  // Where things lie in this process.
  Bits *free_ = nullptr, *sleeping_ = nullptr;
  ReadyBits* ready_ = nullptr;
  atomic<std::uint64_t>* submitted_ = nullptr;  // when each entry's task was
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

}  // namespace freehold::process
