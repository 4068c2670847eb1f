// SPDX-License-Identifier: MIT
// The workers of a task table, a row each: who sleeps, and which process is in which slot.
//
// SleepingWorkers. Invariant: while all processes live, no worker sleeps beside a ready task or in a closed table: a worker
// sets its bit and then looks at the tasks; a thread that makes a task ready then takes a sleeper's bit. One of the two sees
// the other.
//
// WorkerLives. Invariant: a worker that enter() has let in is known by its identity() to every supervisor that begins
// afterwards. Either the worker sees the new epoch and must end, or the supervisor sees the identity.
//
// Threads: any, on SleepingWorkers; on WorkerLives the worker in the slot, and the supervisor.
#pragma once
#include <cstdint>

#include "freehold/process/table/table_bits.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders>
class SleepingWorkers {
  using Layout = TaskTableLayout<A>;

 public:
  explicit SleepingWorkers(const Layout& layout) noexcept
      : workers_(layout.shape.workers),
        bits_(layout, layout.sleeping, workers_),
        rows_(layout.template at<typename Layout::Worker>(layout.workers)),
        closed_(layout.template word<std::uint32_t>(Layout::SharedWord::kClosed)) {}

  // Sleeps until the worker is woken, or for so long, or for no reason; not at all if there is work, which `has_work` looks
  // for with Orders::kRecheck, or the table is closed. Returns whether no thread has woken the worker; only then may the
  // worker end instead of looking for a task.
  template <class HasWork>
  bool wait(unsigned worker, std::uint64_t nanoseconds, HasWork has_work) noexcept {
    const std::uint32_t seen = rows_[worker].wakes.load(Orders::kReadWakes);
    bits_.set(worker, Orders::kSetSleeping);
    if (!has_work() && !closed()) A::wait_shared(rows_[worker].wakes, seen, nanoseconds);
    return forget(worker);
  }
  // Returns whether one slept.
  bool wake_one() noexcept {
    const std::optional<std::uint32_t> worker = bits_.take_one(Orders::kReadSleepers);
    if (worker) wake(*worker);
    return worker.has_value();
  }
  void wake_all() noexcept {
    for (unsigned worker = 0; worker < workers_; ++worker) wake(worker);
  }
  // relaxed: a hint.
  [[nodiscard]] bool any() const noexcept { return bits_.any(std::memory_order_relaxed); }
  [[nodiscard]] bool has(unsigned worker) const noexcept { return bits_.has(worker); }
  // The worker does not sleep any more. Returns whether its bit was there. relaxed: see take_one().
  bool forget(unsigned worker) noexcept { return bits_.clear(worker, std::memory_order_relaxed); }

  // Lets each worker end as soon as it finds no task.
  void close() noexcept {
    closed_->store(1, std::memory_order_relaxed);  // relaxed: published by the wakes
    wake_all();
  }
  [[nodiscard]] bool closed() const noexcept { return closed_word() != 0; }
  // 0 or 1, unless it was damaged.
  [[nodiscard]] std::uint32_t closed_word() const noexcept { return closed_->load(std::memory_order_relaxed); }

  [[nodiscard]] bool has_damage() const noexcept { return bits_.has_damage(); }
  void reset() noexcept {
    bits_.reset();
    closed_->store(0, std::memory_order_relaxed);
  }

 private:
  void wake(unsigned worker) noexcept {
    rows_[worker].wakes.fetch_add(1, Orders::kAddWake);
    A::notify_one_shared(rows_[worker].wakes);
  }

  const std::uint32_t workers_;
  TableBits<A> bits_;
  typename Layout::Worker* const rows_;
  typename A::template atomic<std::uint32_t>* const closed_;
};

template <sync::SharedAtomics A, class Orders>
class WorkerLives {
  using Layout = TaskTableLayout<A>;

 public:
  explicit WorkerLives(const Layout& layout) noexcept
      : workers_(layout.shape.workers),
        rows_(layout.template at<typename Layout::Worker>(layout.workers)),
        epoch_(layout.template word<std::uint32_t>(Layout::SharedWord::kEpoch)) {}

  // Notes which process the worker is, before its first task. Returns false if another supervisor has taken over since
  // `epoch`: then the worker must exit, because no supervisor would notice its death.
  [[nodiscard]] bool enter(unsigned worker, std::uint64_t identity, std::uint32_t epoch) noexcept {
    rows_[worker].identity.store(identity, Orders::kSetSleeping);
    return epoch_->load(Orders::kRecheck) == epoch;
  }
  // A supervisor begins. Afterwards the identity()s are all the processes that may still touch the table as a worker.
  std::uint32_t new_epoch() noexcept { return epoch_->fetch_add(1, Orders::kSetBit) + 1; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_->load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t identity(unsigned worker) const noexcept {
    return rows_[worker].identity.load(Orders::kReadSleepers);
  }
  void leave(unsigned worker) noexcept {
    rows_[worker].identity.store(0, std::memory_order_relaxed);  // relaxed: by the supervisor, for the next one
  }
  // No worker lives. Pre: that is so.
  void reset(std::uint32_t epoch) noexcept {
    for (unsigned worker = 0; worker < workers_; ++worker) {
      set_up(worker, false);
      leave(worker);
    }
    epoch_->store(epoch, std::memory_order_relaxed);
  }

  // For the supervisor and the statistics; relaxed: they publish nothing.
  void set_up(unsigned worker, bool up) noexcept { rows_[worker].up.store(up ? 1 : 0, std::memory_order_relaxed); }
  [[nodiscard]] bool is_up(unsigned worker) const noexcept { return rows_[worker].up.load(std::memory_order_relaxed) != 0; }
  void count_retried(unsigned worker, std::uint64_t n = 1) noexcept {
    rows_[worker].retried.fetch_add(n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t retried(unsigned worker) const noexcept {
    return rows_[worker].retried.load(std::memory_order_relaxed);
  }
  void count_ended(unsigned worker) noexcept { rows_[worker].ended.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t ended(unsigned worker) const noexcept {
    return rows_[worker].ended.load(std::memory_order_relaxed);
  }

 private:
  const std::uint32_t workers_;
  typename Layout::Worker* const rows_;
  typename A::template atomic<std::uint32_t>* const epoch_;  // supervisors so far
};

}  // namespace freehold::process
