// A thread of ours that gives memory back after the delay, for programs that have threads themselves. A program with one
// thread never gets it (unshare, setns and libc's own fast paths depend on that) unless it asks: there the budget holds at
// every moment (budget.hpp).
//
// It is started by an allocation, never by a free: libc frees under locks of its own that pthread_create needs. It sleeps
// without a time-out while nothing is due, blocks all signals, has a small stack and a name, and ends when the program's
// other threads have ended, at exit, and in a fork's child, where the next need starts another.
//
//   State: kNone -> kAwake (may_start) <-> kAsleep (nothing due; wake) -> kNone (end).
//
// Any thread. Cost of may_start and wake when there is nothing to do: a load.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

class PurgerThread {
 public:
  // Gives back what is due, or, before the thread ends, everything. Returns whether more will become due later.
  using Round = bool (*)(bool last) noexcept;

  constexpr PurgerThread() noexcept = default;

  // Whether it is there, or being started.
  [[nodiscard]] bool exists() const noexcept { return state_.load(std::memory_order_relaxed) != kNone; }
  // Starts it unless it exists. Must not be called from free or with a lock of ours held. `round_ms`: between two rounds.
  void start(Round round, std::uint64_t round_ms) noexcept;
  // Something became due.
  void wake() noexcept {
    if (state_.load(std::memory_order_relaxed) == kAsleep) [[unlikely]]
      wake_slow();
  }
  // Makes it end; does not wait.
  void end() noexcept;
  // The same at the process's exit; waits a moment until it is gone.
  void end_and_wait() noexcept;
  // In a fork's child, which has no such thread.
  void forget() noexcept { state_.store(kNone, std::memory_order_relaxed); }

 private:
  enum : std::uint32_t { kNone, kAwake, kAsleep, kEnding };

  static void* main(void* self) noexcept;
  void run() noexcept;
  void wake_slow() noexcept;

  std::atomic<std::uint32_t> state_{kNone};
  std::atomic<std::uint64_t> refused_at_{0};  // milliseconds; the system refused a thread then
  Round round_ = nullptr;
  std::uint64_t round_ms_ = 0;
};

}  // namespace freehold::alloc
