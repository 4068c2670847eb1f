// SPDX-License-Identifier: MIT
// A full memory fence in every running thread of the process, by interrupts: the expensive half of an asymmetric fence
// (sync/atomics.hpp: heavy_fence). errno is unchanged. Threads: any. Cost: a system call, microseconds.
#pragma once
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "freehold/base/keep_errno.hpp"

namespace freehold::os {

struct Membarrier {
  // Registers the process, which run_in_all_threads() needs. False: the kernel cannot (before Linux 4.14, or a filter of
  // system calls).
  [[nodiscard]] static bool register_process() noexcept { return call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
  // False: the system refuses, and no thread was fenced. Pre: register_process() returned true.
  static bool run_in_all_threads() noexcept { return call(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

 private:
  static bool call(int command) noexcept {
    const base::KeepErrno keep;
    return syscall(SYS_membarrier, command, 0, 0) == 0;
  }
};

}  // namespace freehold::os
