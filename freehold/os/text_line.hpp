// SPDX-License-Identifier: MIT
// A line of text in its buffer, for code that may not allocate: printf may. Text that does not fit is cut.
// Async-signal-safe.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/undisturbed.hpp"

namespace freehold::os {

// Writes all bytes to standard error, or as many as the system takes. errno is unchanged. A cancelled thread
// goes on, and a pipe without a reader ends nothing: reports are made in the middle of free(), of a signal's
// handler, or at the end of a program that ended well.
inline void write_to_standard_error(const char* text, std::size_t bytes) noexcept {
  const base::KeepErrno keep;
  const Undisturbed undisturbed;
  while (bytes != 0) {
    const ssize_t written = kernel::write(STDERR_FILENO, text, bytes);
    if (written <= 0 && errno != EINTR) break;
    if (written <= 0) continue;
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

template <std::size_t kBytes>
class TextLine {
 public:
  void add(const char* text) noexcept { add(text, std::strlen(text)); }
  void add(const char* text, std::size_t bytes) noexcept {
    const std::size_t room = kBytes - 1 - length_;  // the end of the line always fits
    const std::size_t take = bytes < room ? bytes : room;
    std::memcpy(text_ + length_, text, take);
    length_ += take;
  }
  void add(std::uint64_t value) noexcept { add_number<10>(value); }
  // Adds the number with 0x before it.
  void add_hex(std::uint64_t value) noexcept {
    add("0x");
    add_number<16>(value);
  }
  void add(const void* address) noexcept { add_hex(reinterpret_cast<std::uintptr_t>(address)); }

  // Ends the line and writes it to standard error in one piece.
  void write() noexcept {
    text_[length_] = '\n';
    write_to_standard_error(text_, length_ + 1);
  }

 private:
  template <unsigned kRadix>
  void add_number(std::uint64_t value) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[value % kRadix];
    while ((value /= kRadix) != 0);
    add(digits + at, sizeof digits - at);
  }

  std::size_t length_ = 0;
  char text_[kBytes];
};

}  // namespace freehold::os
