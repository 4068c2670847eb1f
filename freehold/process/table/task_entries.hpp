// SPDX-License-Identifier: MIT
// The entries of a task table and the life of their words (task_word.hpp):
//
//   free -take-> filling -submit-> ready -claim-> running -end_run-> done, failed, ready, delayed -take_result-> taking
//
// and from each of them back to free. A word changes by compare-exchange only, and nothing else decides.
//
// Invariant: an entry has one owner, whom its word names; the generation counts its tasks, so that a ticket of a former one
// finds nothing. A process that takes an entry sees all that its former owner wrote (kRelease, kAcquire).
//
// Overdue and abandoned are marks that another than the owner sets. A worker whose task is overdue has lost it; one whose
// task is abandoned frees it in place of ending it.
//
// Threads: any thread of any process. Cost: one compare-exchange on the entry's line.
#pragma once
#include <cstdint>
#include <optional>

#include "freehold/process/table/table_bits.hpp"

namespace freehold::process {

// A task that a worker runs.
struct Claim {
  std::uint32_t entry = 0;
  TaskWord word;
};

template <sync::SharedAtomics A, class Orders>
class TaskEntries {
 public:
  using Entry = TaskEntry<A>;

  explicit TaskEntries(const TaskTableLayout<A>& layout) noexcept
      : size_(layout.shape.entries), entries_(layout.template at<Entry>(layout.entries)) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] Entry& operator[](std::uint32_t i) noexcept { return entries_[i]; }
  [[nodiscard]] const Entry& operator[](std::uint32_t i) const noexcept { return entries_[i]; }
  // relaxed: a look.
  [[nodiscard]] TaskWord word(std::uint32_t i) const noexcept {
    return TaskWord(entries_[i].state.load(std::memory_order_relaxed));
  }
  // Reads the word with all that its owner wrote before.
  [[nodiscard]] TaskWord read(std::uint32_t i) const noexcept { return TaskWord(entries_[i].state.load(Orders::kAcquire)); }

  // ---- the client

  // Takes a free entry.
  [[nodiscard]] std::optional<Ticket> take(std::uint32_t i, unsigned client) noexcept {
    std::uint64_t seen = word(i).bits();
    const TaskWord taken = TaskWord(seen).taken_by(client);
    if (TaskWord(seen).state() != TaskState::kFree || !change(i, seen, taken, Orders::kAcquire)) return std::nullopt;
    return Ticket{i, taken.generation()};
  }
  // The filled entry is ready. Returns false if it was taken from its client.
  [[nodiscard]] bool submit(Ticket ticket, unsigned client) noexcept {
    std::uint64_t seen = TaskWord::filling(ticket.generation, client).bits();
    return change(ticket.entry, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease);
  }
  // Returns the state of the client's task; none once it is over and was taken.
  [[nodiscard]] std::optional<TaskWord> look(Ticket ticket) const noexcept {
    const TaskWord word = read(ticket.entry);
    if (word.generation() != ticket.generation || word.state() == TaskState::kFree) return std::nullopt;
    return word;
  }
  // Sleeps until the task may be over, or for so long, or for no reason.
  void wait(Ticket ticket, std::uint64_t nanoseconds = sync::kForever) noexcept {
    const std::optional<TaskWord> word = look(ticket);
    if (word && ask_for_wake(ticket.entry, *word))
      A::wait_shared(entries_[ticket.entry].state, word->with_waited().bits(), nanoseconds);
  }
  // The end of the task will wake its client. Nothing happens if it is over.
  void ask_for_wake(Ticket ticket) noexcept {
    for (std::optional<TaskWord> word; (word = look(ticket)) && !is_ended(*word);)
      if (ask_for_wake(ticket.entry, *word)) return;
  }
  void wake(std::uint32_t i) noexcept { A::notify_all_shared(entries_[i].state); }
  // The ticket of the client's task in this entry, if that is over.
  [[nodiscard]] std::optional<Ticket> result_of(std::uint32_t i, unsigned client) const noexcept {
    const TaskWord over = word(i);  // taking it decides
    if (!over.is_over() || over.client() != client) return std::nullopt;
    return Ticket{i, over.generation()};
  }
  // Takes the result of a task that is over. Returns false to all but one caller.
  [[nodiscard]] bool take_result(Ticket ticket) noexcept {
    const std::optional<TaskWord> word = look(ticket);
    if (!word || !word->is_over()) return false;
    std::uint64_t seen = word->bits();
    return change(ticket.entry, seen, word->with(TaskState::kTaking), Orders::kAcquire);
  }
  // Frees the entry if its state is still `word`. Returns whether it was.
  [[nodiscard]] bool free(std::uint32_t i, TaskWord word) noexcept {
    std::uint64_t seen = word.bits();
    return change(i, seen, word.freed(), Orders::kRelease);
  }
  // The same, of a running task: its worker frees it. relaxed: a request; publishes nothing.
  [[nodiscard]] bool abandon(std::uint32_t i, TaskWord word) noexcept {
    std::uint64_t seen = word.bits();
    return change(i, seen, word.with_abandoned(), std::memory_order_relaxed);
  }

  // ---- the worker, or the supervisor in its place

  // Takes a ready task.
  [[nodiscard]] std::optional<Claim> claim(std::uint32_t i, unsigned worker) noexcept {
    std::uint64_t seen = word(i).bits();
    while (TaskWord(seen).state() == TaskState::kReady) {
      const TaskWord taken = TaskWord(seen).with(TaskState::kRunning).with_worker(worker);
      // The claim is tried again if the client has asked to be woken since.
      if (change(i, seen, taken, Orders::kAcquire)) return Claim{i, taken};
    }
    return std::nullopt;
  }
  // Takes a task that waits, or its time, if its word is still this one: another task may be there by now.
  [[nodiscard]] std::optional<Claim> claim_waiting(std::uint32_t i, TaskWord word, unsigned worker) noexcept {
    std::uint64_t seen = word.bits();
    const TaskWord taken = word.with(TaskState::kRunning).with_worker(worker);
    return change(i, seen, taken, Orders::kAcquire) ? std::optional(Claim{i, taken}) : std::nullopt;
  }
  // Ends the run: the word becomes `next(word)`, or free if the client has abandoned the task. Returns the word before;
  // none if the worker has lost the task.
  template <class Next>
  [[nodiscard]] std::optional<TaskWord> end_run(const Claim& claim, Next next) noexcept {
    for (std::uint64_t seen = claim.word.bits();;) {
      const TaskWord word(seen);
      if (!word.same_attempt(claim.word) || word.overdue()) return std::nullopt;
      if (change(claim.entry, seen, word.abandoned() ? word.freed() : next(word), Orders::kRelease)) return word;
    }
  }

  // ---- the supervisor

  // Marks the running task so that its worker cannot finish it. Returns false if the worker already has.
  bool mark_for_kill(const Claim& claim) noexcept {
    std::uint64_t seen = claim.word.bits();
    // relaxed: nothing is read or published; the worker's compare-exchange fails.
    return change(claim.entry, seen, claim.word.with_overdue(), std::memory_order_relaxed);
  }
  // The delayed task is ready. Returns false if it is not delayed any more.
  [[nodiscard]] bool end_delay(std::uint32_t i, TaskWord word) noexcept {
    // It is tried again if the client has asked to be woken since.
    for (std::uint64_t seen = word.bits(); TaskWord(seen).same_attempt(word);)
      if (change(i, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease)) return true;
    return false;
  }
  // Changes a task from running on a dead worker to ready; to failed if this was attempt number `attempts`; to free if it
  // was abandoned. Returns the new word.
  TaskWord hand_on(std::uint32_t i, TaskWord word, Failure reason, unsigned attempts) noexcept {
    for (;; word = read(i)) {
      TaskWord next = word.next_attempt();
      if (word.abandoned()) {
        next = word.freed();
      } else if (word.attempt() + 1 < attempts) {
        entries_[i].started.store(0, std::memory_order_relaxed);  // relaxed: published by the word
      } else {
        entries_[i].failure.store(reason);
        next = word.with(TaskState::kFailed).without_flags();
      }
      if (std::uint64_t seen = word.bits(); change(i, seen, next, Orders::kRelease)) return next;
    }
  }
  // The task that the worker runs now; none if it runs none.
  [[nodiscard]] std::optional<Claim> running(unsigned worker) const noexcept {
    for (std::uint32_t i = 0; i < size_; ++i)
      if (const TaskWord word = read(i); word.state() == TaskState::kRunning && word.worker() == worker)
        return Claim{i, word};
    return std::nullopt;
  }
  // All tasks are lost, and their clients awake. Pre: no worker lives.
  void reset(std::uint32_t generation) noexcept {
    for (std::uint32_t i = 0; i < size_; ++i) {
      entries_[i].state.store(TaskWord(std::uint64_t{generation} << 32).bits(), Orders::kRelease);
      wake(i);
    }
  }

  // ---- counts, exact at rest

  template <class Counts>
  [[nodiscard]] std::uint32_t count_if(Counts counts) const noexcept {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < size_; ++i) n += counts(word(i)) ? 1u : 0u;
    return n;
  }
  // Entries in this state.
  [[nodiscard]] std::uint32_t count(TaskState state) const noexcept {
    return count_if([state](TaskWord word) { return word.state() == state; });
  }
  [[nodiscard]] std::uint32_t waiting() const noexcept { return count(TaskState::kReady) + count(TaskState::kDelayed); }
  // Entries of the client; inexact while it takes and drops some.
  [[nodiscard]] std::uint32_t count_of(unsigned client) const noexcept {
    return count_if([client](TaskWord word) {
      return word.state() != TaskState::kFree && word.client() == client && !word.abandoned();
    });
  }
  // Tasks that wait or run, or are about to, of one client or of all.
  [[nodiscard]] std::uint32_t open_of(std::optional<unsigned> client) const noexcept {
    return count_if([client](TaskWord word) {
      const bool open = word.state() == TaskState::kFilling || word.waits() || word.state() == TaskState::kRunning;
      return open && (!client || word.client() == *client);
    });
  }

 private:
  static bool is_ended(TaskWord word) noexcept { return word.is_over() || word.state() == TaskState::kTaking; }
  // Returns whether the word is `word` and waited now. relaxed: asks to be woken; nothing is read or published.
  bool ask_for_wake(std::uint32_t i, TaskWord word) noexcept {
    std::uint64_t seen = word.bits();
    return !is_ended(word) && (word.waited() || change(i, seen, word.with_waited(), std::memory_order_relaxed));
  }
  // The only way in which an entry's state changes. On failure `seen` becomes the state.
  bool change(std::uint32_t i, std::uint64_t& seen, TaskWord to, std::memory_order order) noexcept {
    // relaxed on failure: a caller that acts on the state tries again.
    return entries_[i].state.compare_exchange_strong(seen, to.bits(), order, std::memory_order_relaxed);
  }

  const std::uint32_t size_;  // a copy: that in the table may be damaged
  Entry* const entries_;
};

}  // namespace freehold::process
