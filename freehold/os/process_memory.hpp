// SPDX-License-Identifier: MIT
// The memory of another process (process_vm_readv), read while it runs on. Threads: any. Cost: a system call.
#pragma once
#include <limits.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {

// Copies `bytes` bytes at `address` of the process. They may change during the call: integers at multiples of their size are
// copied whole, but what belongs together may not fit together. Errors: false and errno, `to` is then partly written; EPERM
// if the process may not be looked at (another user's, or kernel.yama.ptrace_scope), ESRCH if it has ended.
[[nodiscard]] inline bool read_process_memory(pid_t process, std::uint64_t address, void* to, std::size_t bytes) noexcept {
  const iovec here{.iov_base = to, .iov_len = bytes};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return system_call(SYS_process_vm_readv, process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// The same for `count` places of `bytes` bytes each, which lie one behind the other in `to` then. Cost: a system call for
// each 256 of them.
[[nodiscard]] inline bool read_process_memory(pid_t process, const std::uint64_t* addresses, std::size_t count, void* to,
                                              std::size_t bytes) noexcept {
  constexpr std::size_t kMost = 256;  // at most IOV_MAX; the array lies on the stack
  static_assert(kMost <= IOV_MAX);
  for (std::size_t begin = 0; begin < count; begin += kMost) {
    const std::size_t n = std::min(kMost, count - begin);
    iovec there[kMost];
    for (std::size_t i = 0; i < n; ++i)
      there[i] = {.iov_base = reinterpret_cast<void*>(addresses[begin + i]), .iov_len = bytes};
    const iovec here{.iov_base = static_cast<std::byte*>(to) + begin * bytes, .iov_len = n * bytes};
    if (system_call(SYS_process_vm_readv, process, &here, 1, &there[0], n, 0) != static_cast<ssize_t>(n * bytes))
      return false;
  }
  return true;
}

// The same the other way round: writes them while the process runs on. One byte is written at once; of more, the process may
// see a part.
[[nodiscard]] inline bool write_process_memory(pid_t process, std::uint64_t address, const void* from,
                                               std::size_t bytes) noexcept {
  const iovec here{.iov_base = const_cast<void*>(from), .iov_len = bytes};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return system_call(SYS_process_vm_writev, process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// Lets processes of the same user read this one's memory, where kernel.yama.ptrace_scope is 1 and only ancestors may. They
// may attach a debugger then, too, as everywhere without Yama. A child of fork must ask for itself. Errors: none; where the
// system refuses, or has no Yama, nothing changes.
inline void let_same_user_read() noexcept {
#ifndef PR_SET_PTRACER
  constexpr int kSetPtracer = 0x59616d61;
#else
  constexpr int kSetPtracer = PR_SET_PTRACER;
#endif
  constexpr unsigned long kAnyProcess = ~0UL;
  const base::KeepErrno keep;
  (void)kernel::prctl(kSetPtracer, kAnyProcess);
}

}  // namespace freehold::os
