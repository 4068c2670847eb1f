// SPDX-License-Identifier: MIT
// The slow paths of the task table: tasks that their component has rejected, and everything that the supervisor does after a
// death, a deadline or damage, or before it sleeps. Included by task_table.hpp, where each function is declared and
// documented.
#pragma once
#include <cstdint>
#include <optional>

#include "freehold/base/check.hpp"
#include "freehold/process/task_table.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders>
typename TaskTable<A, Orders>::Retried TaskTable<A, Orders>::retry(const Claim& claim, std::int32_t code,
                                                                   std::uint64_t now) noexcept {
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

template <sync::SharedAtomics A, class Orders>
template <class Held>
void TaskTable<A, Orders>::recover_worker(unsigned worker, Failure reason, unsigned attempts, Held held) noexcept {
  if (worker < shape_.workers) signals_.forget_sleeper(worker);
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    if (word.worker() != worker) continue;
    if (word.state() == TaskState::kRunning) {
      const bool goes_on = !word.abandoned() && word.attempt() + 1 < attempts_of(i, attempts);
      held(i, word, goes_on);
      requeue_or_fail(i, word, reason, attempts);
    } else if (word.is_over()) {
      wake_waiter(i, word);  // the worker may have died before it woke the client
    }
  }
  sweep();
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::recover_client(unsigned client) noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    for (;;) {
      const TaskWord word(entries_[i].state.load(Orders::kAcquire));
      if (word.state() == TaskState::kFree || word.client() != client || word.abandoned()) break;
      if (drop_from(i, word)) break;
    }
  }
  sweep();
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::sweep() noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskState state = TaskWord(entries_[i].state.load(Orders::kAcquire)).state();
    if (state == TaskState::kFree) signals_.set_free(i);
    if (state == TaskState::kReady) set_ready(i);
  }
  signals_.wake_all();
}

template <sync::SharedAtomics A, class Orders>
template <class Since>
std::optional<Claim> TaskTable<A, Orders>::find_overdue(std::uint64_t now, Since since) noexcept {
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

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::begin_due(std::uint64_t now) noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    // relaxed: it belongs to the word that is still there when it is changed.
    if (word.state() != TaskState::kDelayed || entries_[i].due.load(std::memory_order_relaxed) > now) continue;
    // Again if the client has asked to be woken meanwhile.
    for (std::uint64_t seen = word.bits(); TaskWord(seen).same_attempt(word);)
      if (change(i, seen, TaskWord(seen).with(TaskState::kReady), Orders::kRelease)) {
        publish_ready(i);
        break;
      }
  }
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::fail_expired(std::uint64_t now) noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    if (!word.waits() || !expired(i, now)) continue;
    // Only this word: another task may be there by now.
    std::uint64_t seen = word.bits();
    const TaskWord taken = word.with(TaskState::kRunning).with_worker(TaskWord::kSupervisor);
    if (!change(i, seen, taken, Orders::kAcquire)) continue;
    complete({i, taken}, 0, {FailureKind::kDeadline, static_cast<std::int32_t>(within_ms(i))});
  }
}

template <sync::SharedAtomics A, class Orders>
template <class Stuck>
void TaskTable<A, Orders>::help_stuck(Stuck stuck) noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    // While all workers are busy, its bit is enough.
    if (word.state() == TaskState::kReady && stuck(i, word) && (!has_ready(i) || signals_.any_sleeps())) publish_ready(i);
    if (word.is_over() && stuck(i, word)) wake_waiter(i, word);
  }
}

template <sync::SharedAtomics A, class Orders>
std::optional<Claim> TaskTable<A, Orders>::running(unsigned worker) const noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    if (word.state() == TaskState::kRunning && word.worker() == worker) return Claim{i, word};
  }
  return std::nullopt;
}

template <sync::SharedAtomics A, class Orders>
template <class Known>
const char* TaskTable<A, Orders>::find_damage(Known& known) const noexcept {
  if (header_->magic != kMagic || header_->version != kVersion || header_->shape != shape_ ||
      header_->bytes != bytes(shape_))
    return "its header";
  if (signals_.closed_word() != (known.closed() ? 1u : 0u)) return "whether it is closed";
  if (epoch_->load(std::memory_order_relaxed) != known.epoch()) return "its epoch";
  if (signals_.has_damage()) return "its bits";
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    if (word.state() == TaskState::kFree) continue;
    if (word.client() >= shape_.clients) return "a task's client";
    if (!word.abandoned() && !known.is_connected(word.client())) return "a task's client";
    if (word.state() != TaskState::kRunning) continue;
    const unsigned worker = word.worker();
    if (worker >= shape_.workers) return "a task's worker";
    if (!known.lasts(i, word)) continue;
    if (!known.is_live(worker) || signals_.sleeps(worker) || known.has_another(worker)) return "a task's worker";
  }
  return nullptr;
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::reset(std::uint32_t generation, std::uint32_t epoch) noexcept {
  header_->magic = kMagic;
  header_->version = kVersion;
  header_->shape = shape_;
  header_->bytes = bytes(shape_);
  signals_.reset();
  for (unsigned worker = 0; worker < shape_.workers; ++worker) {
    set_up(worker, false);
    leave(worker);
  }
  epoch_->store(epoch, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    entries_[i].state.store(TaskWord(std::uint64_t{generation} << 32).bits(), Orders::kRelease);
    A::notify_all_shared(entries_[i].state);
  }
  for (unsigned client = 0; client < shape_.clients; ++client) wake_client(client);
  sweep();
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::fail_ready(Failure reason) noexcept {
  begin_due(~std::uint64_t{0});
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const std::optional<Claim> task = claim(i, TaskWord::kSupervisor);
    if (task) complete(*task, 0, reason);
  }
}

template <sync::SharedAtomics A, class Orders>
template <class Open>
bool TaskTable<A, Orders>::prepare_idle(Open open) noexcept {
  const NotifyOn former = signals_.exchange_notify(NotifyOn::kEveryTask);
  // A task whose bit was cleared meanwhile shows in its word: the recheck is an acquire load, too.
  bool none = !signals_.any_ready(Orders::kRecheck);
  for (std::uint32_t i = 0; none && i < shape_.entries; ++i) {
    const TaskWord word(entries_[i].state.load(Orders::kAcquire));
    none = !word.waits() && word.state() != TaskState::kRunning && !(word.is_over() && open(i, word));
  }
  // relaxed: a client that saw the other value notifies once more
  if (!none) signals_.set_notify(former, std::memory_order_relaxed);
  return none;
}

template <sync::SharedAtomics A, class Orders>
template <class Counts>
std::uint32_t TaskTable<A, Orders>::count_if(Counts counts) const noexcept {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < shape_.entries; ++i) n += counts(word(i)) ? 1u : 0u;
  return n;
}

template <sync::SharedAtomics A, class Orders>
std::uint32_t TaskTable<A, Orders>::count_of(unsigned client) const noexcept {
  return count_if(
      [client](TaskWord word) { return word.state() != TaskState::kFree && word.client() == client && !word.abandoned(); });
}

template <sync::SharedAtomics A, class Orders>
std::uint32_t TaskTable<A, Orders>::open_of(std::optional<unsigned> client) const noexcept {
  return count_if([client](TaskWord word) {
    const bool open = word.state() == TaskState::kFilling || word.waits() || word.state() == TaskState::kRunning;
    return open && (!client || word.client() == *client);
  });
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::check_invariants() const noexcept {
  for (std::uint32_t i = 0; i < shape_.entries; ++i) {
    const TaskState state = word(i).state();
    FREEHOLD_ASSERT(state != TaskState::kFree || signals_.has_free(i));
    FREEHOLD_ASSERT(state != TaskState::kReady || has_ready(i));
  }
}

template <sync::SharedAtomics A, class Orders>
bool TaskTable<A, Orders>::wants_retry(const Entry& entry, TaskWord word, std::int32_t code) const noexcept {
  // relaxed, all: published by the word that the worker has taken.
  if (word.attempt() + 1 >= PackedParameters(entry.packed.load(std::memory_order_relaxed)).retry_attempts()) return false;
  bool each = true;
  for (const atomic<std::int32_t>& one : entry.codes) {
    const std::int32_t wanted = one.load(std::memory_order_relaxed);
    if (wanted == code) return true;
    each = each && wanted == 0;
  }
  return each;
}

template <sync::SharedAtomics A, class Orders>
void TaskTable<A, Orders>::requeue_or_fail(std::uint32_t i, TaskWord word, Failure reason, unsigned attempts) noexcept {
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

}  // namespace freehold::process
