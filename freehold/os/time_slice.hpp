// SPDX-License-Identifier: MIT
// The length of the turns in which an ordinary thread runs beside others. Threads that wake up wait for the end of the turn
// that they meet, which the shortest slice of those that share the CPU bounds: who asks for short ones delays others less.
// Safe after a fork, and in signal handlers. Threads: any. Cost: two system calls.
#pragma once
#include <sched.h>
#include <sys/resource.h>

#include <cstdint>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

// For the calling thread, an ordinary one, and the threads and processes that it starts from now on. Before Linux 6.12 it
// changes nothing; the kernel takes 0.1 to 100 ms. Returns false, and errno, on an error.
inline bool set_time_slice(std::uint64_t ns) noexcept {
  // The kernel's struct sched_attr, whose header cannot be included beside libc's <sched.h>.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } wanted{};
  static_assert(sizeof wanted == 48);
  wanted.size = sizeof wanted;
  wanted.policy = SCHED_OTHER;
  wanted.nice = ::getpriority(PRIO_PROCESS, 0);
  wanted.runtime_ns = ns;
  return system_call(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

}  // namespace freehold::os
