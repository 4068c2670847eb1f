// SPDX-License-Identifier: MIT
// NativeAtomics asks this of the system: the calling thread's number and CPU, a sleep until a word changes (futex), a fence
// in all threads at once (membarrier). sync/atomics.hpp builds A::wait, A::notify and A::heavy_fence on it; algorithms use
// those. errno is unchanged: a lock inside free() must not change it. Threads: any. Cost: a system call each; a fence
// microseconds.
#pragma once
#include <sys/types.h>

#include <cstdint>

namespace freehold::os {

// The system's number of the calling thread.
[[nodiscard]] pid_t thread_id() noexcept;
// The CPU that it runs on, which may be another one at once. Cost: three loads where libc has registered the thread
// (rseq.hpp).
[[nodiscard]] unsigned cpu_number() noexcept;

// A wait without a time-out.
inline constexpr std::uint64_t kForever = ~std::uint64_t{0};  // nanoseconds

// Which threads may sleep on the word: those of this process, or of every process that maps the memory (dearer).
enum class FutexScope { kProcess, kShared };

// Every wait may return for no reason, so callers loop.
struct Futex {
  // Sleeps while the word is `expected`, at most for so many nanoseconds.
  static void wait(const void* word, std::uint32_t expected, FutexScope scope, std::uint64_t time_out = kForever) noexcept;
  // The same within this process, at most until `deadline`, nanoseconds of CLOCK_MONOTONIC; its greatest: for ever.
  static void wait_until(const void* word, std::uint32_t expected, std::int64_t deadline) noexcept;
  // Sleeps for a while: threads of a lower priority run.
  static void nap(std::uint64_t nanoseconds) noexcept;
  // Wakes one thread that sleeps on the word, or all.
  static void wake_one(const void* word, FutexScope scope) noexcept;
  static void wake_all(const void* word, FutexScope scope) noexcept;
};

// A full memory fence in every running thread of the process, by interrupts: the expensive half of an asymmetric fence.
struct Membarrier {
  // Registers the process, which run_in_all_threads() needs. False: the kernel cannot (before Linux 4.14, or a filter of
  // system calls).
  [[nodiscard]] static bool register_process() noexcept;
  // False: the system refuses, and no thread was fenced. Pre: register_process() returned true.
  static bool run_in_all_threads() noexcept;
};

}  // namespace freehold::os
