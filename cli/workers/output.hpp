// Where the tasks' outputs go: gathered, and written in few pieces. A reader who does not read must not keep Ctrl-C out.
#pragma once
#include <string>
#include <string_view>

#include "cli/support/file_descriptor.hpp"
#include "cli/support/interrupts.hpp"

namespace freehold::cli::workers {

class Output {
 public:
  explicit Output(FileDescriptor file);

  void append(std::string_view text) { text_.append(text); }
  [[nodiscard]] bool is_large() const noexcept { return text_.size() >= kLarge; }
  // Writes all. Returns false if a signal came before that was possible. Throws Failure if it cannot be written.
  bool flush(Interrupts& interrupts);
  // Writes what can be written without waiting.
  void flush_some();

 private:
  static constexpr std::size_t kLarge = 64 * 1024;
  [[nodiscard]] bool is_ready() const noexcept;
  void write_piece();

  FileDescriptor file_;
  std::size_t piece_;  // that a write takes without waiting, where poll() has said that it may
  std::string text_;
  std::size_t written_ = 0;
};

}  // namespace freehold::cli::workers
