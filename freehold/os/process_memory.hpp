// SPDX-License-Identifier: MIT
// The memory of another process (process_vm_readv), read while it runs on. Threads: any. Cost: a system call.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace freehold::os {

// Copies `bytes` bytes at `address` of the process. They may change meanwhile: integers at multiples of their size are
// copied whole, but what belongs together may not fit together. Errors: false and errno, `to` is then partly written; EPERM
// if the process may not be looked at (another user's, or kernel.yama.ptrace_scope), ESRCH if it has ended.
[[nodiscard]] inline bool read_process_memory(pid_t process, std::uint64_t address, void* to, std::size_t bytes) noexcept {
  const iovec here{.iov_base = to, .iov_len = bytes};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace freehold::os
