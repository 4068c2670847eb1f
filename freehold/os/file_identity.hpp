// SPDX-License-Identifier: MIT
// Which file a descriptor is of: for code that keeps a descriptor in a process that is not its own. A program that closes
// descriptors which it did not open soon has another file under the same number, and nothing may be written there.
//
// The file must be held as long as its identity is kept (open somewhere, or mapped): the system gives the number of a file
// that is gone to the next one. Between a look and what follows another thread may still close the descriptor.
// Threads: any. Cost: a system call. Errno is changed where the descriptor is not open.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool is_known = false;

  // Not known: the descriptor is not open.
  [[nodiscard]] static FileIdentity of(int fd) noexcept {
    struct stat status{};
    if (kernel::fstat(fd, &status) != 0) return {};
    return {status.st_dev, status.st_ino, true};
  }
  [[nodiscard]] bool is_of(int fd) const noexcept {
    const FileIdentity now = of(fd);
    return is_known && now.is_known && now.device == device && now.inode == inode;
  }
};

}  // namespace freehold::os
