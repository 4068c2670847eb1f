// SPDX-License-Identifier: MIT
// Futexes: a thread sleeps while a 32-bit word has a value, until another thread wakes it. sync/atomics.hpp builds A::wait
// and A::notify on this; algorithms use those. Every wait may return for no reason, so callers loop. errno is unchanged: a
// lock inside free() must not change it. Threads: any. Cost: a system call each.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <ctime>

#include "freehold/base/keep_errno.hpp"

namespace freehold::os {

// Which threads may sleep on the word: those of this process, or of every process that maps the memory (dearer).
enum class FutexScope { kProcess, kShared };

struct Futex {
  static constexpr long kCall = SYS_futex;  // number of the system call, as /proc/PID/task/TID/syscall says it
  // Whether a call with these arguments waits until a lock is free: for a change of a word that says "held, and awaited",
  // 2 in the C library's locks, in Rust's and in Go's. A wait for a condition or for work expects another value.
  [[nodiscard]] static constexpr bool waits_for_lock(unsigned long operation, unsigned long expected) noexcept {
    switch (static_cast<int>(operation) & FUTEX_CMD_MASK) {
      case FUTEX_WAIT:
      case FUTEX_WAIT_BITSET: return static_cast<std::uint32_t>(expected) == 2;
      case FUTEX_LOCK_PI: return true;
      default: return false;
    }
  }

  // Sleeps while the word is `expected`, at most for `time_out`; null: for ever.
  static void wait(const void* word, std::uint32_t expected, FutexScope scope, const timespec* time_out = nullptr) noexcept {
    call(word, scope == FutexScope::kProcess ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, expected, time_out);
  }
  // The same within this process, at most until `deadline` of CLOCK_MONOTONIC; null: for ever.
  static void wait_until(const void* word, std::uint32_t expected, const timespec* deadline) noexcept {
    call(word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, FUTEX_BITSET_MATCH_ANY);
  }
  // Sleeps for a while: threads of a lower priority run.
  static void nap(long nanoseconds) noexcept {
    const std::uint32_t never = 0;
    const timespec time{0, nanoseconds};
    wait(&never, 0, FutexScope::kProcess, &time);
  }
  // Wakes one thread that sleeps on the word, or all.
  static void wake_one(const void* word, FutexScope scope) noexcept { call(word, wake_operation(scope), 1, nullptr); }
  static void wake_all(const void* word, FutexScope scope) noexcept { call(word, wake_operation(scope), INT_MAX, nullptr); }

 private:
  static constexpr int wake_operation(FutexScope scope) noexcept {
    return scope == FutexScope::kProcess ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE;
  }
  static void call(const void* word, int operation, std::uint32_t value, const timespec* time, unsigned bits = 0) noexcept {
    const base::KeepErrno keep;
    syscall(SYS_futex, word, operation, value, time, nullptr, bits);
  }
};

}  // namespace freehold::os
