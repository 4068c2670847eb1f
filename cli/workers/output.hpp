// SPDX-License-Identifier: MIT
// Gathers the tasks' outputs and writes them to standard output in few pieces. A reader that does not read must not block
// Ctrl-C.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tools/support/file_descriptor.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::cli::workers {

class Output {
 public:
  explicit Output(FileDescriptor file);

  void append(std::string_view text) {
    text_.append(text);
    appended_ += text.size();
  }
  // Bytes so far: given to append(), and written.
  [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }
  [[nodiscard]] std::uint64_t written() const noexcept { return appended_ - (text_.size() - written_); }
  [[nodiscard]] bool is_large() const noexcept { return text_.size() >= kLarge; }
  // Writes all. Returns false if a signal came first. Throws Failure if it cannot be written.
  bool flush(Interrupts& interrupts);
  // Writes what can be written without waiting.
  void flush_some();
  // Waits until some can be written. Returns false if a signal came.
  bool wait(Interrupts& interrupts) const;

 private:
  static constexpr std::size_t kLarge = 64 * 1024;
  [[nodiscard]] bool is_ready() const noexcept;
  void write_piece();

  FileDescriptor file_;
  std::size_t piece_;  // bytes that one write takes without blocking, after poll() has allowed it
  std::string text_;
  std::size_t written_ = 0;  // bytes of text_ that are written
  std::uint64_t appended_ = 0;
};

}  // namespace freehold::cli::workers
