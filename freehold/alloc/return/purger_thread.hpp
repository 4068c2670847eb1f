// SPDX-License-Identifier: MIT
// A thread of ours that gives memory back after the delay, for programs that have threads themselves. A program with one
// thread never gets it unless it asks (unshare, setns and libc's own fast paths depend on that); there the budget holds at
// every moment (budget.hpp).
//
// An allocation starts it, never a free: libc frees under its own locks that pthread_create needs. That is libc's own
// pthread_create: a program's wrapper may wait for a lock that the allocating thread holds. It sleeps without a time-out
// while nothing is due, blocks all signals, and has a small stack and a name. The thread that ends it waits until it is
// gone, so that it is never the process's last. A fork's child has none until the next need.
//
// Its states: purger_state.hpp. `thread_` and `stack_` are written by the thread that starts or ends it, all signals
// blocked.
//
// Any thread. Cost of wake when there is nothing to do: a load.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "freehold/alloc/return/purger_state.hpp"
#include "freehold/os/clock.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

class PurgerThread {
 public:
  // A bounded step of giving back what is due. It must not wait for a lock.
  using Step = Due (*)() noexcept;
  // The thread's first act.
  using Begin = void (*)() noexcept;

  constexpr PurgerThread() noexcept = default;

  // Returns whether it is there, or being started.
  [[nodiscard]] bool exists() const noexcept { return state_.exists(); }
  // Returns whether it ended or was refused a moment ago.
  [[nodiscard]] bool has_to_wait() const noexcept {
    return os::coarse_milliseconds() < not_before_.load(std::memory_order_relaxed);
  }
  // Keeps it from starting for a while.
  void put_off() noexcept { not_before_.store(os::coarse_milliseconds() + kRetryMs, std::memory_order_relaxed); }
  // Starts it unless it exists, or ended or was refused a moment ago. Must not be called from free or with a lock of ours
  // held, but within other_calls(). `round_ms`: between two rounds. False: the system refuses a thread.
  bool start(Begin begin, Step step, std::uint64_t round_ms) noexcept;
  // Something became due.
  void wake() noexcept { state_.wake(); }
  // The same, and it steps now.
  void hurry() noexcept { state_.hurry(); }
  // Makes it end, between two steps, and waits until it is gone. Returns whether there was one.
  bool end() noexcept;
  // True if the system knows it by this id, or it has begun just now.
  [[nodiscard]] bool may_be(pid_t thread) const noexcept {
    const pid_t own = id_.load(std::memory_order_relaxed);  // relaxed: a number
    return exists() && (own == thread || own == 0);
  }
  // The same as end(); if it was this thread, until the system does not know it any more.
  void end_before_signal(pid_t thread) noexcept;
  // The thread itself counts, too, until it makes the calls of malloc and free alone.
  [[nodiscard]] OtherCalls<sync::NativeAtomics>& other_calls() noexcept { return other_calls_; }
  // In a fork's child, which has no such thread.
  void forget() noexcept {
    state_.forget();
    other_calls_.forget();
    stack_ = nullptr;  // stays mapped: libc may have it on a list
    not_before_.store(0, std::memory_order_relaxed);
    id_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kRetryMs = 1000;

  static void* main(void* self) noexcept;
  [[nodiscard]] bool create() noexcept;
  void join() noexcept;

  PurgerState<sync::NativeAtomics> state_;
  OtherCalls<sync::NativeAtomics> other_calls_;
  std::atomic<std::uint64_t> not_before_{0};  // milliseconds: it ended, or the system refused a thread
  std::atomic<pid_t> id_{0};                  // 0: not known yet
  Begin begin_ = nullptr;
  Step step_ = nullptr;
  std::uint64_t round_ms_ = 0;
  pthread_t thread_{};
  void* stack_ = nullptr;  // null: none
  std::size_t stack_bytes_ = 0;
};

}  // namespace freehold::alloc
