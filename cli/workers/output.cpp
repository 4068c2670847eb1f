// SPDX-License-Identifier: MIT
#include "cli/workers/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/support/failure.hpp"

namespace freehold::cli::workers {

Output::Output(FileDescriptor file) : file_(std::move(file)), piece_(PIPE_BUF) {
  struct stat facts{};
  if (::fstat(file_.get(), &facts) == 0 && S_ISREG(facts.st_mode)) piece_ = kLarge;
}

bool Output::is_ready() const noexcept {
  pollfd ready{file_.get(), POLLOUT, 0};
  return ::poll(&ready, 1, 0) > 0;
}

void Output::write_piece() {
  const ssize_t count = ::write(file_.get(), text_.data() + written_, std::min(piece_, text_.size() - written_));
  if (count < 0 && errno != EINTR && errno != EAGAIN)
    throw Failure(kExitRefused, fmt::format("cannot write to standard output: {}", error_text(errno)));
  written_ += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  if (written_ < text_.size()) return;
  text_.clear();
  written_ = 0;
}

bool Output::wait(Interrupts& interrupts) const {
  pollfd files[]{{file_.get(), POLLOUT, 0}, {interrupts.fd(), POLLIN, 0}};
  ::poll(files, 2, -1);
  return interrupts.arrived() == 0;
}

bool Output::flush(Interrupts& interrupts) {
  while (!text_.empty()) {
    if (!is_ready() && !wait(interrupts)) return false;
    write_piece();
  }
  return true;
}

void Output::flush_some() {
  while (!text_.empty() && is_ready()) write_piece();
}

}  // namespace freehold::cli::workers
