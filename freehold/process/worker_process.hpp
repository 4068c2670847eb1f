// SPDX-License-Identifier: MIT
// A worker's process and its children: the group is killed with the worker, by its number; the worker itself by its
// descriptor (os/process_handle.hpp), so that a number that the system uses again is never taken for the process that had
// it.
#pragma once
#include <poll.h>
#include <signal.h>

#include <cerrno>

#include "freehold/os/process_handle.hpp"

namespace freehold::process {

// Kills the worker and its children. Pre: the worker was not reaped, so its number is not used again.
inline void kill_with_children(int pid, int pidfd) noexcept {
  ::kill(-pid, SIGKILL);
  os::signal_process(pidfd, SIGKILL);
}
// Kills the children of a worker that has ended. Pre: as above.
inline void kill_children(int pid) noexcept { ::kill(-pid, SIGKILL); }
[[nodiscard]] inline bool has_died(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  return ::poll(&dead, 1, 0) == 1;
}
inline void wait_for_death(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  while (::poll(&dead, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace freehold::process
