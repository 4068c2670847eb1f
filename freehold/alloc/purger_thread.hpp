// A thread of ours that gives memory back after the delay, for programs that have threads themselves. A program with one
// thread never gets it (unshare, setns and libc's own fast paths depend on that) unless it asks: there the budget holds at
// every moment (budget.hpp).
//
// It is started by an allocation, never by a free: libc frees under locks of its own that pthread_create needs. It sleeps
// without a time-out while nothing is due, blocks all signals, has a small stack and a name. The thread that makes it end
// waits until it is gone, so that it is never the process's last; a fork's child has none until the next need.
//
//   State: kNone -> kStarting -> kAwake (start) <-> kAsleep (nothing due; wake) -> kEnding -> kNone (end).
//          kStarting or kAwake -> kCramped: the program's thread-local storage left too little of the stack; the next start
//          ends that thread and takes twice the stack.
//   `thread_` and `stack_` are written by whoever holds kStarting or kEnding, all signals blocked.
//
// Any thread. Cost of wake when there is nothing to do: a load.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "freehold/alloc/due.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

class PurgerThread {
 public:
  // A bounded step of giving back what is due. It must not wait for a lock.
  using Step = Due (*)() noexcept;

  constexpr PurgerThread() noexcept = default;

  // Whether it is there, or being started.
  [[nodiscard]] bool exists() const noexcept {
    const std::uint32_t state = state_.load(std::memory_order_relaxed);  // relaxed: a glance
    return state != kNone && state != kCramped;
  }
  // Starts it unless it exists, or ended or was refused a moment ago. Must not be called from free or with a lock of ours
  // held. `round_ms`: between two rounds.
  void start(Step step, std::uint64_t round_ms) noexcept;
  // Something became due. The load is seq_cst: of the caller, who made something due, and of the thread, which says that it
  // sleeps and looks again, one sees the other.
  void wake() noexcept {
    if (state_.load(std::memory_order_seq_cst) == kAsleep) [[unlikely]]
      wake_slow();
  }
  // Makes it end, between two steps, and waits until it is gone. Returns whether there was one.
  bool end() noexcept;
  // In a fork's child, which has no such thread.
  void forget() noexcept {
    state_.store(kNone, std::memory_order_relaxed);
    stack_ = nullptr;  // stays mapped: libc may have it on a list
    not_before_.store(0, std::memory_order_relaxed);
  }

 private:
  enum : std::uint32_t { kNone, kStarting, kAwake, kAsleep, kCramped, kEnding };

  static void* main(void* self) noexcept;
  void run() noexcept;
  [[nodiscard]] Due round() noexcept;
  void wake_slow() noexcept;
  [[nodiscard]] bool create() noexcept;
  void join() noexcept;

  std::atomic<std::uint32_t> state_{kNone};
  std::atomic<std::uint64_t> not_before_{0};  // milliseconds: it ended, or the system refused a thread
  Step step_ = nullptr;
  std::uint64_t round_ms_ = 0;
  pthread_t thread_{};
  void* stack_ = nullptr;  // null: none
  std::size_t stack_bytes_ = 0;
};

}  // namespace freehold::alloc
