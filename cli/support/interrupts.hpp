// SPDX-License-Identifier: MIT
// Turns Ctrl-C into an event that poll() can wait for. While an Interrupts lives, SIGINT, SIGTERM and SIGHUP do not kill the
// process but make its descriptor readable. Ignored signals stay ignored. One object at a time, in the main thread.
//
// After its end the next signal kills the process again, but not within a second of the one that arrived: `timeout -s INT`
// sends each signal twice, and the results are still to be written. Those that came before its end do nothing more.
#pragma once
#include <signal.h>

#include "cli/support/file_descriptor.hpp"

namespace freehold::cli {

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

}  // namespace freehold::cli
