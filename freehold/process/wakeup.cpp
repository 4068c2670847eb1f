// SPDX-License-Identifier: MIT
#include "freehold/process/wakeup.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "freehold/process/worker_protocol.hpp"

namespace freehold::process {

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
