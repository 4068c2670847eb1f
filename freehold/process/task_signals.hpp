// SPDX-License-Identifier: MIT
// Where to look in a task table, and whom to wake: the bits of free entries and of ready tasks, and the processes that sleep
// until there is one. TaskTable (task_table.hpp) is its only user.
//
//   signals.set_free(entry);            // the entry's word says so already
//   signals.notify_space();
//   signals.find_free(from_first, [&](std::uint32_t entry) { return take_it_by_its_word(entry); });
//   signals.wait_for_space(nanoseconds);   // if it found none
//
// Nothing here decides: a bit says that an entry's word is worth a look. It is set after the word and cleared before it, so
// that it may be stale; or it may be missing, because a process died in between, until sweep() sets it again.
//
// No wake-up is lost while all live. A thread that sets a bit reads afterwards who sleeps; a thread that goes to sleep
// announces it and then looks at the bits again. One of the two sees the other. wake_all() wakes the sleepers that a
// process which died has not woken.
//
// Order: clients take entries round and round the table. A worker takes a task of the highest priority that has a ready one.
// Among these it takes the one submitted first of the next kCompared in the table, round and round from where the last one
// was found. So tasks of one priority start in the order of their submission while at most kCompared of them wait, and none
// is passed over for ever by its equals. A task waits as long as there are tasks of a higher priority.
//
// Damage: a worker may write anywhere here. A bit beyond the table is cleared, and a sleeper beyond it is not woken.
//
// Threads: any thread of any process. Cost: an operation on a shared line for each bit that is set or cleared.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/base/bits.hpp"
#include "freehold/process/task_table_layout.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::process {

struct TaskSignalOrders {
  // A thread that sets a bit reads afterwards who sleeps; a thread that goes to sleep announces it and then checks the bits
  // again. All four are seq_cst, or both could miss the other (store buffering). release, too: the entry's word is visible
  // to the thread that clears the bit.
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

template <sync::SharedAtomics A, class Orders>
class TaskSignals {
  template <class T>
  using atomic = typename A::template atomic<T>;
  using Layout = TaskTableLayout<A>;
  using Bits = typename Layout::Bits;
  using ReadyBits = typename Layout::ReadyBits;
  using Worker = typename Layout::Worker;
  using SharedWord = typename Layout::SharedWord;
  template <class T>
  using Line = typename Layout::template Line<T>;

 public:
  // Of which tasks the supervisor wants to be notified.
  enum class NotifyOn : std::uint32_t { kNone, kTaskWithoutWorker, kEveryTask };

  TaskSignals(void* table, const Layout& layout, const TableShape& shape) noexcept
      : entries_(shape.entries),
        worker_slots_(shape.workers),
        free_(Layout::template at<Bits>(table, layout.free)),
        ready_(Layout::template at<ReadyBits>(table, layout.ready)),
        submitted_(Layout::template at<atomic<std::uint64_t>>(table, layout.submitted)),
        sleeping_(Layout::template at<Bits>(table, layout.sleeping)),
        clients_(Layout::template at<Line<std::uint32_t>>(table, layout.clients)),
        workers_(Layout::template at<Worker>(table, layout.workers)),
        free_cursor_(layout.template word<std::uint32_t>(table, SharedWord::kFreeCursor)),
        space_(layout.template word<std::uint32_t>(table, SharedWord::kSpace)),
        closed_(layout.template word<std::uint32_t>(table, SharedWord::kClosed)),
        notify_on_(layout.template word<std::uint32_t>(table, SharedWord::kNotifyOn)),
        ready_cursors_(layout.template word<std::uint64_t>(table, SharedWord::kReadyCursors)) {}

  // ---- free entries

  // The first result of `take(entry)` that is one, of the free entries from the cursor on, or from the first on. Clears the
  // entry's bit before.
  template <class Take>
  [[nodiscard]] auto find_free(bool from_first, Take take) noexcept -> decltype(take(0)) {
    // relaxed, the cursor: where to begin; any entry is right.
    const std::uint32_t begin = from_first ? 0 : free_cursor_->load(std::memory_order_relaxed) % entries_;
    decltype(take(0)) taken;
    const auto word_of = [this](std::uint32_t w) -> atomic<std::uint64_t>& { return free_[w].bits[0]; };
    visit_bits(begin, word_of, [&](std::uint32_t i) {
      if (clear_free(i)) taken = take(i);
      if (taken && !from_first) free_cursor_->store(i + 1, std::memory_order_relaxed);
      return taken.has_value();
    });
    return taken;
  }
  // Returns whether the caller has cleared it.
  [[nodiscard]] bool clear_free(std::uint32_t i) noexcept { return clear_bit(free_[i / 64].bits[0], i); }
  void set_free(std::uint32_t i, std::memory_order order = Orders::kSetBit) noexcept {
    free_[i / 64].bits[0].fetch_or(base::bit(i % 64), order);
  }
  [[nodiscard]] bool has_free(std::uint32_t i) const noexcept { return has_bit(free_[i / 64].bits[0], i); }

  // See TaskTable.
  void wait_for_space(std::uint64_t nanoseconds) noexcept {
    const std::uint32_t seen = space_->fetch_or(1, Orders::kSetSleeping) | 1;
    if (any(free_, Orders::kRecheck)) return;
    A::wait_shared(*space_, seen, nanoseconds);
    // The waking thread cleared the flag, and cannot know whether others sleep.
    space_->fetch_or(1, Orders::kSetSleeping);
  }
  void pass_on_space() noexcept {
    if (any(free_, Orders::kRecheck)) notify_space();
  }
  // Wakes one client that waits for an entry, if any does.
  void notify_space() noexcept {
    std::uint32_t seen = space_->load(Orders::kReadSleepers);
    // Odd: a client may sleep. One more is even. relaxed: it only has to differ.
    if ((seen & 1) != 0 &&
        space_->compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed, std::memory_order_relaxed))
      A::notify_one_shared(*space_);
  }

  // ---- ready tasks. `priority`: of the task in entry i; a bit in the word of another priority harms nothing but the order

  // When the entry's task was submitted. relaxed: published by its word.
  void set_submitted(std::uint32_t i, std::uint64_t time) noexcept { submitted_[i].store(time, std::memory_order_relaxed); }
  // The first result of `take(entry)` that is one, of the ready tasks in the order of the head. Clears the entry's bit
  // before.
  template <class Take>
  [[nodiscard]] auto find_ready(Take take) noexcept -> decltype(take(0)) {
    // relaxed: where to begin; any entry is right.
    const std::uint64_t cursors = ready_cursors_->load(std::memory_order_relaxed);
    for (unsigned priority = 0; priority < kPriorities; ++priority)
      if (const auto taken = take_oldest(priority, cursors, take)) return taken;
    return {};
  }
  void set_ready(std::uint32_t i, unsigned priority) noexcept {
    ready_[i / 64].bits[priority].fetch_or(base::bit(i % 64), Orders::kSetBit);
  }
  [[nodiscard]] bool has_ready(std::uint32_t i, unsigned priority) const noexcept {
    return has_bit(ready_[i / 64].bits[priority], i);
  }
  [[nodiscard]] bool any_ready(std::memory_order order) const noexcept { return any(ready_, order); }

  // See TaskTable.
  bool wait_for_work(unsigned worker, std::uint64_t nanoseconds) noexcept {
    atomic<std::uint32_t>& wakes = workers_[worker].wakes;
    atomic<std::uint64_t>& sleepers = sleeping_[worker / 64].bits[0];
    const std::uint32_t seen = wakes.load(Orders::kReadWakes);
    sleepers.fetch_or(base::bit(worker % 64), Orders::kSetSleeping);
    if (!any(ready_, Orders::kRecheck) && !closed()) A::wait_shared(wakes, seen, nanoseconds);
    // relaxed: the bit is a token, which belongs to the thread that clears it.
    return (sleepers.fetch_and(~base::bit(worker % 64), std::memory_order_relaxed) & base::bit(worker % 64)) != 0;
  }
  // Returns whether one slept.
  bool wake_one_worker() noexcept {
    for (std::uint64_t w = 0; w < Layout::words(worker_slots_); ++w) {
      std::uint64_t bits = sleeping_[w].bits[0].load(Orders::kReadSleepers);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint64_t one = bits & (~bits + 1);
        // relaxed: the bit is a token; the thread that clears it wakes.
        if ((sleeping_[w].bits[0].fetch_and(~one, std::memory_order_relaxed) & one) == 0) continue;
        const auto worker = static_cast<unsigned>(w * 64 + base::lowest_bit(one));
        if (worker >= worker_slots_) continue;  // damage
        wake_worker(worker);
        return true;
      }
    }
    return false;
  }
  // relaxed: a hint.
  [[nodiscard]] bool any_sleeps() const noexcept {
    for (std::uint64_t w = 0; w < Layout::words(worker_slots_); ++w)
      if (sleeping_[w].bits[0].load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
  [[nodiscard]] bool sleeps(unsigned worker) const noexcept { return has_bit(sleeping_[worker / 64].bits[0], worker); }
  // The worker is dead. relaxed: the bit of a sleeper that does not sleep any more.
  void forget_sleeper(unsigned worker) noexcept {
    sleeping_[worker / 64].bits[0].fetch_and(~base::bit(worker % 64), std::memory_order_relaxed);
  }

  // Lets each worker end as soon as it finds no task.
  void close() noexcept {
    closed_->store(1, std::memory_order_relaxed);  // relaxed: published by the wakes
    wake_all_workers();
  }
  [[nodiscard]] bool closed() const noexcept { return closed_word() != 0; }
  // 0 or 1, unless it was damaged.
  [[nodiscard]] std::uint32_t closed_word() const noexcept { return closed_->load(std::memory_order_relaxed); }

  // ---- results, each for one client

  // See TaskTable. It is a read-modify-write, so that it comes either before or after the addition of wake_client().
  [[nodiscard]] std::uint32_t prepare_wait(unsigned client) noexcept {
    return clients_[client].word.fetch_or(1, Orders::kReadWakes) | 1;
  }
  bool wait_for_wake(unsigned client, std::uint32_t wakes, std::uint64_t nanoseconds) noexcept {
    A::wait_shared(clients_[client].word, wakes, nanoseconds);
    return clients_[client].word.load(std::memory_order_relaxed) != wakes;  // relaxed: a hint
  }
  // Pre: it is a client's slot.
  void wake_client(unsigned client) noexcept {
    // Odd: prepare_wait() was called at least once.
    if ((clients_[client].word.fetch_add(2, Orders::kAddWake) & 1) != 0) A::notify_one_shared(clients_[client].word);
  }

  // ---- the supervisor

  // Asks for one notification, of such a task. With kSetSleeping, the caller looks at the bits again.
  void set_notify(NotifyOn which, std::memory_order order) noexcept {
    notify_on_->store(static_cast<std::uint32_t>(which), order);
  }
  // The same. Returns what was asked for before.
  [[nodiscard]] NotifyOn exchange_notify(NotifyOn which) noexcept {
    return static_cast<NotifyOn>(notify_on_->exchange(static_cast<std::uint32_t>(which), Orders::kSetSleeping));
  }
  // Whether the caller, which has just set the bit of such a task, has to notify the supervisor.
  [[nodiscard]] bool take_notify(NotifyOn least) noexcept {
    return notify_on_->load(Orders::kReadSleepers) >= static_cast<std::uint32_t>(least) &&
           notify_on_->exchange(0, std::memory_order_relaxed) != 0;  // relaxed: a token
  }

  // Wakes every worker, and every client that waits for an entry.
  void wake_all() noexcept {
    wake_all_workers();
    space_->fetch_add(2, std::memory_order_relaxed);  // relaxed: only has to differ; the flag stays
    A::notify_all_shared(*space_);
  }
  // Whether there are bits beyond the table, which are damage.
  [[nodiscard]] bool has_damage() const noexcept {
    return has_more(free_, entries_) || has_more(ready_, entries_) || has_more(sleeping_, worker_slots_);
  }
  // Clears every bit, and reopens the table. Pre: no worker lives.
  void reset() noexcept {
    const auto clear = [](auto* words, std::uint64_t count) {
      for (std::uint64_t w = 0; w < count; ++w)
        for (auto& bits : words[w].bits) bits.store(0, std::memory_order_relaxed);
    };
    clear(free_, Layout::words(entries_));
    clear(ready_, Layout::words(entries_));
    clear(sleeping_, Layout::words(worker_slots_));
    closed_->store(0, std::memory_order_relaxed);
  }

 private:
  // Ready tasks of which a worker takes the oldest. Their times lie on 8 to 64 cache lines.
  static constexpr unsigned kCompared = 64;

  static bool has_bit(const atomic<std::uint64_t>& word, std::uint32_t i) noexcept {
    return (word.load(std::memory_order_relaxed) & base::bit(i % 64)) != 0;
  }
  [[nodiscard]] static bool clear_bit(atomic<std::uint64_t>& word, std::uint32_t i) noexcept {
    return (word.fetch_and(~base::bit(i % 64), Orders::kClearBit) & base::bit(i % 64)) != 0;
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
    for (std::uint64_t w = 0; w < Layout::words(entries_); ++w)
      for (const atomic<std::uint64_t>& bits : words[w].bits)
        if (bits.load(order) != 0) return true;
    return false;
  }

  // Calls `look(i)` for each entry that has its bit, once round the table from `begin`, until it returns true. Clears bits
  // beyond the table, which are damage.
  template <class WordOf, class Look>
  void visit_bits(std::uint32_t begin, WordOf word_of, Look look) const noexcept {
    const auto count = static_cast<std::uint32_t>(Layout::words(entries_));
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
        if (i >= entries_)
          word_of(w).fetch_and(~base::bit(i % 64), std::memory_order_relaxed);
        else if (look(i))
          return;
      }
    }
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
  template <class Take>
  [[nodiscard]] auto take_oldest(unsigned priority, std::uint64_t cursors, Take take) noexcept -> decltype(take(0)) {
    const unsigned shift = 16 * priority;
    // Again if another worker was faster.
    while (const std::optional<std::uint32_t> i = oldest(priority, (cursors >> shift & 0xffff) % entries_)) {
      if (!clear_bit(ready_[*i / 64].bits[priority], *i)) continue;
      const auto taken = take(*i);
      if (!taken) continue;
      const std::uint64_t others = cursors & ~(std::uint64_t{0xffff} << shift);
      ready_cursors_->store(others | std::uint64_t{(*i + 1) & 0xffff} << shift, std::memory_order_relaxed);
      return taken;
    }
    return {};
  }

  void wake_worker(unsigned worker) noexcept {
    workers_[worker].wakes.fetch_add(1, Orders::kAddWake);
    A::notify_one_shared(workers_[worker].wakes);
  }
  void wake_all_workers() noexcept {
    for (unsigned worker = 0; worker < worker_slots_; ++worker) wake_worker(worker);
  }

  // Copies: those in the table may be damaged.
  const std::uint32_t entries_, worker_slots_;
  Bits* const free_;
  ReadyBits* const ready_;
  atomic<std::uint64_t>* const submitted_;  // the time, of each entry's task
  Bits* const sleeping_;
  Line<std::uint32_t>* const clients_;  // wakes of each: futexes
  Worker* const workers_;
  atomic<std::uint32_t>* const free_cursor_;
  atomic<std::uint32_t>* const space_;  // a futex; odd: a client may wait for an entry
  atomic<std::uint32_t>* const closed_;
  atomic<std::uint32_t>* const notify_on_;      // NotifyOn
  atomic<std::uint64_t>* const ready_cursors_;  // 16 bits for each priority
};

}  // namespace freehold::process
