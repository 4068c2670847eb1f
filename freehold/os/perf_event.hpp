// SPDX-License-Identifier: MIT
// The kernel's performance events (perf_event_open), which libc does not wrap. Threads: any. Cost: a system call.
#pragma once
#include <linux/perf_event.h>
#include <sys/types.h>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

// Opens an event of one thread on whatever CPU it runs; the descriptor is closed on exec. `attributes.size` is set by the
// caller. Errors: -1 and errno; ESRCH if the thread has ended, EACCES or EPERM if kernel.perf_event_paranoid forbids it.
[[nodiscard]] inline int open_perf_event(perf_event_attr& attributes, pid_t thread) noexcept {
  return static_cast<int>(system_call(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace freehold::os
