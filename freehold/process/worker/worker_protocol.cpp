// SPDX-License-Identifier: MIT
#include "freehold/process/worker/worker_protocol.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
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

int open_wakeup() noexcept { return above_worker_descriptors(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void notify(int wakeup_fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakeup_fd, &one, sizeof one);
}

void drain_wakeup(int wakeup_fd) noexcept {
  std::uint64_t notifications = 0;
  [[maybe_unused]] const ssize_t read = ::read(wakeup_fd, &notifications, sizeof notifications);
}

}  // namespace freehold::process
