// SPDX-License-Identifier: MIT
// Differences between processors that need no system call; no other file under freehold/base may ask which one it is.
#pragma once
#include <atomic>
#include <cstddef>

namespace freehold::base {

// Fetches the line of `address` for writing; no effect that a program could see.
#if defined(__x86_64__)
// __builtin_prefetch means a fetch for reading on the oldest x86-64, which leaves the line shared with the CPU that has it:
// the write would go and ask again. Every x86-64 CPU executes this one, some as nothing.
inline void prefetch_for_write(const void* address) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
}
#else
inline void prefetch_for_write(const void* address) noexcept { __builtin_prefetch(address, 1); }  // arm64: prfm pstl1keep
#endif

// True if other CPUs see the stores of one in their order, whatever orders the program gives them.
#if defined(__x86_64__)
inline constexpr bool kStoresAreInOrder = true;
#else
inline constexpr bool kStoresAreInOrder = false;
#endif

// True if `value` is below a bound that grows, read relaxed: in one instruction, which compilers make two of an atomic
// load.
inline bool is_below(std::size_t value, const std::atomic<std::size_t>& bound) noexcept {
#if defined(__x86_64__)
  bool is;
  asm("cmpq %2, %1" : "=@ccb"(is) : "r"(value), "m"(bound));
  return is;
#else
  return value < bound.load(std::memory_order_relaxed);
#endif
}

}  // namespace freehold::base
