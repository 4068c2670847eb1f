// SPDX-License-Identifier: MIT
// Turns Ctrl-C into an event that poll() can wait for. While an Interrupts lives, SIGINT, SIGTERM and SIGHUP do not kill the
// process but make its descriptor readable. Ignored signals stay ignored. One object at a time, in the main thread.
//
// After its end the next signal kills the process again, but not within a second of the one that arrived: `timeout -s INT`
// sends each signal twice, and the results are still to be written. Those that came before its end do nothing more.
#pragma once
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "tools/support/file_descriptor.hpp"

namespace freehold::inline tools {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  // The signal that arrived, or 0.
  [[nodiscard]] int arrived() noexcept;
  // The signal mask from before, for children.
  [[nodiscard]] const sigset_t& original_mask() const noexcept { return original_; }

 private:
  sigset_t original_{}, signals_{};
  FileDescriptor file_;
  int arrived_ = 0;
};

// Shows the progress of a long piece of work as one line on standard error, if that is a terminal.
class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The steps of all the work whose parts each count their own; 0: there is one part.
  void expect(std::size_t steps) { expected_ = steps; }
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
  std::size_t expected_ = 0, before_ = 0, last_ = 0;  // steps: of all parts; of those before; shown last
};

// "2 h 5 min", "1 min 20 s", "12 s"
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace freehold::inline tools
