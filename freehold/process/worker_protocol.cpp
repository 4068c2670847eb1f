// SPDX-License-Identifier: MIT
#include "freehold/process/worker_protocol.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace freehold::process {

int above_worker_descriptors(int fd) noexcept {
  if (fd < 0) return fd;
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, kLowestPoolDescriptor);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  return high;
}

}  // namespace freehold::process
