// SPDX-License-Identifier: MIT
// Reading a thread's stack where nothing vouches for what is there: a frame pointer that is any number.
//
// Each step leads up the stack, by less than kMostFrameBytes, and every page from where the guessing begins is asked for
// before it is read. Any thread; async-signal-safe. Cost: a system call for each page.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::os {

// A word of a stack. Not instrumented: the word may be another function's, or another thread's to write.
[[nodiscard, gnu::no_sanitize_address, gnu::no_sanitize_thread]] inline std::uintptr_t stack_word(
    std::uintptr_t address) noexcept {
  using Word [[gnu::may_alias]] = std::uintptr_t;
  return *reinterpret_cast<const Word*>(address);
}

// Returns whether the word can be read.
[[nodiscard]] bool is_readable(std::uintptr_t address) noexcept;

class ReadableStack {
 public:
  static constexpr std::size_t kMostFrameBytes = 64 * 1024;

  // Covers the stack from a stack pointer up.
  explicit ReadableStack(std::uintptr_t stack) noexcept;
  // Returns whether a frame with this stack pointer can be one whose caller's is `to`, so that the words between can be
  // read. Pre: the stack pointer that this began with, or a `to` for which the answer was yes.
  [[nodiscard]] bool has_frame(std::uintptr_t stack, std::uintptr_t to) noexcept;

 private:
  std::uintptr_t end_;  // what lies below can be read
};

}  // namespace freehold::os
