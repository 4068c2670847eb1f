// SPDX-License-Identifier: MIT
// The process's one depot of call stacks, for all that watches blocks. Any thread; async-signal-safe after init.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace freehold::check {

// Keeps stacks of at most `depth` frames from now on (0: none), once the unwinder is prepared (os/call_stack.hpp). The first
// call maps the depot; where that fails, every stack is unknown. Thread-safe.
void keep_call_stacks(unsigned depth) noexcept;

namespace [[gnu::visibility("hidden")]] call_stacks {
extern constinit std::atomic<unsigned> g_depth;  // 0: none are kept
[[nodiscard, gnu::noinline]] std::uint32_t note(unsigned depth) noexcept;
}  // namespace call_stacks

// The number of the calling thread's stack, without calls inside this library; 0: unknown, or none are kept.
[[nodiscard]] inline std::uint32_t note_call_stack() noexcept {
  // Acquire: the depot was published by the depth.
  const unsigned depth = call_stacks::g_depth.load(std::memory_order_acquire);
  return depth == 0 ? 0 : call_stacks::note(depth);
}

// Every number is less.
inline constexpr std::size_t kMostStackNumbers = std::size_t{1} << 23;
// Stands for the stack of a block from before stacks were kept: the dynamic linker's and the C++ runtime's, before the
// program began.
inline constexpr std::uint32_t kBeforeStacks = kMostStackNumbers - 1;
[[nodiscard]] bool keeps_call_stacks() noexcept;
// Copies the addresses of a stack, the innermost call's first, at most `most`. Returns how many; 0: unknown.
[[nodiscard]] unsigned read_call_stack(std::uint32_t number, void** addresses, unsigned most) noexcept;

// For readers outside the process: addresses of the depot's words, and of the number of those that are used, an integer of 4
// bytes. The word whose number is a stack's has its depth in the lowest byte; its addresses follow. Words that are used do
// not change any more, once the number of their stack is known. 0: no stacks were kept yet.
struct LiveCallStacks {
  std::uint64_t words = 0, used = 0;
};
[[nodiscard]] LiveCallStacks live_call_stacks() noexcept;

// "freehold:   <title>" and the stack's lines; nothing if none are kept.
void detail_call_stack(const char* title, std::uint32_t number) noexcept;

}  // namespace freehold::check
