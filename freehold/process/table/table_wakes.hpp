// SPDX-License-Identifier: MIT
// Two sleepers of a task table that wait for more than one task.
//
// ClientWakes: a client sleeps until any of its tasks ends. Invariant: a task that ends after prepare_wait() changes the
// client's word, so that wait() returns; what ended before is visible after it.
//
// SupervisorCall: the supervisor asks to be notified of a task. Invariant: the supervisor writes what it asks for and then
// looks at the tasks; a client that makes a task ready then reads what is asked for. One of the two sees the other. Each
// request is taken by one client.
//
// Threads: any, on ClientWakes; on SupervisorCall any may take(), and the supervisor asks.
#pragma once
#include <cstdint>

#include "freehold/process/table/table_bits.hpp"

namespace freehold::process {

template <sync::SharedAtomics A, class Orders>
class ClientWakes {
  using Layout = TaskTableLayout<A>;
  using Line = typename Layout::template Line<std::uint32_t>;

 public:
  explicit ClientWakes(const Layout& layout) noexcept : lines_(layout.template at<Line>(layout.clients)) {}

  // It is a read-modify-write, so that it comes either before or after the addition of wake().
  [[nodiscard]] std::uint32_t prepare_wait(unsigned client) noexcept {
    return lines_[client].word.fetch_or(1, Orders::kReadWakes) | 1;
  }
  // Sleeps while the wakes are what prepare_wait() returned, or for so long, or for no reason. Returns whether there was
  // one.
  bool wait(unsigned client, std::uint32_t wakes, std::uint64_t nanoseconds = sync::kForever) noexcept {
    A::wait_shared(lines_[client].word, wakes, nanoseconds);
    return lines_[client].word.load(std::memory_order_relaxed) != wakes;  // relaxed: a hint
  }
  // Pre: it is a client's slot.
  void wake(unsigned client) noexcept {
    // Odd: prepare_wait() was called at least once.
    if ((lines_[client].word.fetch_add(2, Orders::kAddWake) & 1) != 0) A::notify_one_shared(lines_[client].word);
  }

 private:
  Line* const lines_;  // wakes of each client: futexes
};

template <sync::SharedAtomics A, class Orders>
class SupervisorCall {
 public:
  // The tasks of which the supervisor wants to be notified.
  enum class On : std::uint32_t { kNone, kTaskWithoutWorker, kEveryTask };

  explicit SupervisorCall(const TaskTableLayout<A>& layout) noexcept
      : on_(layout.template word<std::uint32_t>(TaskTableLayout<A>::SharedWord::kNotifyOn)) {}

  // Asks for one notification, of such a task. With kSetSleeping, the caller looks at the bits again.
  void ask(On which, std::memory_order order) noexcept { on_->store(static_cast<std::uint32_t>(which), order); }
  // The same. Returns what was asked for before.
  [[nodiscard]] On exchange(On which) noexcept {
    return static_cast<On>(on_->exchange(static_cast<std::uint32_t>(which), Orders::kSetSleeping));
  }
  // Returns whether the caller, which has just set the bit of such a task, has to notify the supervisor.
  [[nodiscard]] bool take(On least) noexcept {
    return on_->load(Orders::kReadSleepers) >= static_cast<std::uint32_t>(least) &&
           on_->exchange(0, std::memory_order_relaxed) != 0;  // relaxed: a token
  }

 private:
  typename A::template atomic<std::uint32_t>* const on_;
};

}  // namespace freehold::process
