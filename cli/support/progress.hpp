// SPDX-License-Identifier: MIT
// Shows the progress of a long piece of work as one line on standard error, if that is a terminal.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace freehold::cli {

class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `of` 0: the amount of work is not known yet.
  void show(std::size_t done, std::size_t of, const std::string& what);
  // The line as it stands, cut to the terminal's width.
  void show(const std::string& line);
  // Clears the line.
  void wipe();
  [[nodiscard]] bool is_shown() const noexcept { return terminal_; }

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point counting_since_{};
};

// "1 min 20 s", "12 s"
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace freehold::cli
