// Processes by descriptor (pidfd), so that a number that the system uses again is never taken for the process that had it.
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace freehold::process {

// Returns -1 and errno if there is no such process.
[[nodiscard]] inline int open_process(int pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
inline void kill_process(int pidfd) noexcept { ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0); }
// Kills the process group of a worker: its children. Pre: the worker was not reaped, so its number is not used again.
inline void kill_group(int pid) noexcept { ::kill(-pid, SIGKILL); }
[[nodiscard]] inline bool is_dead(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  return ::poll(&dead, 1, 0) == 1;
}
inline void wait_for_death(int pidfd) noexcept {
  pollfd dead{pidfd, POLLIN, 0};
  while (::poll(&dead, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace freehold::process
