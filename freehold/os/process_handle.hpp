// SPDX-License-Identifier: MIT
// Descriptors of processes (pidfd): unlike a process number, one never comes to mean another process. poll() reports POLLIN
// when the process has ended; close() ends the descriptor. Linux 5.3. Threads: any. Cost: a system call each.
#pragma once
#include <sys/types.h>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

// Opens a descriptor of a process, closed on exec. Errors: -1 and errno; ESRCH: no such process.
// Pre: the process was not reaped, or its number may by now be another's.
[[nodiscard]] inline int open_process(pid_t process) noexcept {
  return static_cast<int>(system_call(SYS_pidfd_open, process, 0));
}

// Sends a signal to the process. Errors: false and errno; ESRCH if it has ended and was reaped.
inline bool signal_process(int handle, int signal) noexcept {
  return system_call(SYS_pidfd_send_signal, handle, signal, nullptr, 0) == 0;
}

}  // namespace freehold::os
