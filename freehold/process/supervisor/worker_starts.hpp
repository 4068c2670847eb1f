// SPDX-License-Identifier: MIT
// Decides when the next worker starts, by how the last ones started and ended, and whether the table is broken.
//
// After a worker that dies without a task, and without ever having ended one, the next one starts after 1 ms, 2 ms, 4 ms ...
// 1 s (the first two at once). The table is broken if no worker lives and kStartFailures in a row did not come up, for
// kStartTimeout if workers came up before or the system was short of something. Then reason() says why. The supervisor goes
// on trying, and the first worker that comes up mends it.
//
// Threads: the supervisor's; want_worker(), was_up(), is_broken() and reason() any.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace freehold::process {

class WorkerStarts {
 public:
  // Somebody waits for the first worker.
  void want_worker() noexcept { wanted_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_awaited() const noexcept {
    return wanted_.load(std::memory_order_relaxed) && !was_up_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool was_up() const noexcept { return was_up_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  // Empty while all is well.
  [[nodiscard]] std::string reason() const {
    if (!is_broken()) return "";
    const std::lock_guard guard(reason_lock_);
    return reason_;
  }

  // The time of the next start.
  [[nodiscard]] std::uint64_t not_before() const noexcept { return not_before_; }
  // One worker at a time starts for waiting tasks, so that short tasks do not start as many workers as there are tasks.
  // While it is not up and tasks still wait, each `tick` doubles how many may start at once.
  void look(std::uint64_t time, std::uint64_t tick, unsigned max_workers) noexcept {
    if (time - doubled_at_ < tick || max_starting_ >= max_workers) return;
    doubled_at_ = time;
    max_starting_ *= 2;
  }
  // Returns whether another one may start beside `starting` that are not up yet.
  [[nodiscard]] bool may_start(unsigned starting) noexcept {
    if (starting == 0) max_starting_ = 1;
    return starting < max_starting_;
  }
  void note_start(unsigned starting, std::uint64_t time) noexcept {
    if (starting == 0) doubled_at_ = time;
  }

  // A worker is up.
  void note_up() noexcept {
    failures_ = 0;
    broken_.store(false, std::memory_order_relaxed);
    was_up_.store(true, std::memory_order_release);  // pairs with was_up()
  }
  // One that was up has ended. `productive`: its end says nothing about the next one.
  void note_end(bool productive, std::uint64_t time) noexcept {
    note_up();
    if (productive)
      unproductive_ = 0;
    else
      retry_later(time);
  }
  // A worker did not come up. `transient`: for a reason that does not lie in its program. `any_lives`: another one does.
  // Returns whether the table has become broken.
  [[nodiscard]] bool note_failure(std::uint64_t time, const std::string& why, bool transient, bool any_lives) {
    if (failures_++ == 0) {
      failing_since_ = time;
      is_transient_ = false;
    }
    is_transient_ = is_transient_ || transient;
    retry_later(time);
    if (any_lives || may_come_up(time)) return false;
    {
      const std::lock_guard guard(reason_lock_);
      reason_ = why;
    }
    return !broken_.exchange(true, std::memory_order_release);  // pairs with is_broken()
  }

 private:
  static constexpr unsigned kStartFailures = 5;
  static constexpr std::uint64_t kStartTimeout = 5'000'000'000, kMillisecond = 1'000'000;  // nanoseconds

  // Returns whether the next worker may come up, although the last ones did not.
  [[nodiscard]] bool may_come_up(std::uint64_t time) const noexcept {
    if (failures_ < kStartFailures) return true;
    return (was_up_.load(std::memory_order_relaxed) || is_transient_) && time - failing_since_ < kStartTimeout;
  }
  void retry_later(std::uint64_t time) noexcept {
    if (++unproductive_ > 2) not_before_ = time + (kMillisecond << std::min(unproductive_ - 3, 10u));
  }

  unsigned unproductive_ = 0;        // workers in a row that ended no task, nor died of one
  unsigned max_starting_ = 1;        // workers that may be coming up together
  std::uint64_t doubled_at_ = 0;     // when that was doubled
  unsigned failures_ = 0;            // starts in a row
  std::uint64_t failing_since_ = 0;  // the first of them
  bool is_transient_ = false;        // one of them had a reason that may pass
  std::uint64_t not_before_ = 0;
  std::atomic<bool> broken_{false};
  std::atomic<bool> was_up_{false};  // a worker, ever
  std::atomic<bool> wanted_{false};
  mutable std::mutex reason_lock_;
  std::string reason_;
};

}  // namespace freehold::process
