// SPDX-License-Identifier: MIT
// Per-CPU stacks of pointers by restartable sequences: pop and push without an atomic instruction, since the kernel sends a
// thread that is preempted, migrated or signalled in the middle back to the start. Only glibc's own registration is used
// (2.35 and later), and of its area only rseq_cs is written, as the ABI asks.
//
//   Layout: CPU i's stacks lie at area + (i << kCpuShift); a stack is {top, limit}, its array starts with a null sentinel.
//   Commit: the store of `top` is the last instruction of the sequence; everything that it makes visible was written before.
//
// Any thread, x86-64 only so far; elsewhere, and under emulators that register nothing, rseq_available() is false and the
// caller keeps per-thread caches. Cost: about 14 instructions each. Source: Linux's Documentation/userspace-api/rseq.rst.
#pragma once
#include <linux/rseq.h>

#include <cstddef>
#include <cstdint>

#include "freehold/os/libc.hpp"

// glibc 2.35 and later define both. The declarations stand here so that an older glibc, or musl, builds the same; they are
// weak, so that there the mode is off and the program still starts.
extern "C" {
extern const std::ptrdiff_t __rseq_offset;
extern const unsigned __rseq_size;
}
#pragma weak __rseq_offset
#pragma weak __rseq_size

namespace freehold::os {

struct CpuStack {
  void** top;    // one past the newest entry; top[-1] == nullptr: empty
  void** limit;  // top == limit: full
};
static_assert(sizeof(CpuStack) == 2 * sizeof(void*) && offsetof(CpuStack, limit) == sizeof(void*));

inline constexpr unsigned kCpuShift = 16;  // 64 KiB for the stacks of one CPU

// Returns whether glibc has registered this thread and the machine is one we have sequences for.
[[nodiscard]] bool rseq_available() noexcept;
// The CPU this thread runs on, for hints. Pre: rseq_available().
[[nodiscard]] unsigned rseq_cpu() noexcept;

// The same for any thread. Cost: three loads for a registered thread, otherwise that of libc's sched_getcpu().
[[nodiscard]] inline unsigned current_cpu() noexcept {
  if (&__rseq_offset != nullptr) [[likely]] {
    const auto* area =
        reinterpret_cast<const volatile struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
    if (const auto cpu = static_cast<std::int32_t>(area->cpu_id); cpu >= 0) [[likely]]
      return static_cast<unsigned>(cpu);
  }
  return static_cast<unsigned>(Libc::sched_getcpu());
}

// The memory node of that CPU, from 0 on; 0 also where the kernel (before 6.3) or libc does not tell. Cost: two loads.
[[nodiscard]] inline unsigned current_node() noexcept {
  constexpr std::size_t kNodeAt = 20;  // node_id, which libc's struct may not name
  if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size < kNodeAt + 4) return 0;
  const char* const area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  return *reinterpret_cast<const volatile std::uint32_t*>(area + kNodeAt);
}

// Pops from, pushes to, the current CPU's stack whose CPU 0 instance is `stack`. Null: empty; false: full.
// Pre: rseq_available().
[[nodiscard]] void* rseq_pop(CpuStack* stack) noexcept;
[[nodiscard]] bool rseq_push(CpuStack* stack, void* pointer) noexcept;

}  // namespace freehold::os
