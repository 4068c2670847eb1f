// SPDX-License-Identifier: MIT
#include "cli/workers/task_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/support/failure.hpp"

namespace freehold::cli::workers {
namespace {

constexpr std::size_t kBuffer = 64 * 1024;

}  // namespace

FileDescriptor open_tasks(const std::string& path) {
  FileDescriptor file(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char nothing = 0;
  if (!file || (::read(file.get(), &nothing, 0) < 0 && errno != EAGAIN))
    throw Failure(kExitRefused, fmt::format("--tasks: cannot read {}: {}", printable(path), error_text(errno)));
  return file;
}

TaskReader::TaskReader(FileDescriptor file, char end, std::size_t most_bytes)
    : file_(std::move(file)), end_(end), most_(most_bytes) {}

TaskReader::Filled TaskReader::fill() {
  pollfd ready{file_.get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) == 0) return Filled::kNotYet;
  buffer_.resize(kBuffer);
  const ssize_t got = ::read(file_.get(), buffer_.data(), buffer_.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    buffer_.resize(position_);
    return Filled::kNotYet;
  }
  if (got < 0) error_ = error_text(errno);
  buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  position_ = 0;
  return got > 0 ? Filled::kSome : Filled::kEnd;
}

void TaskReader::keep(const char* bytes, std::size_t count) {
  task_.append(bytes, std::min(count, most_ + 1 - task_.size()));
}

TaskReader::Next TaskReader::next(std::string& task) {
  if (!error_.empty()) return Next::kEnd;
  for (;;) {
    const std::size_t end = buffer_.find(end_, position_);
    const std::size_t until = std::min(end, buffer_.size());
    keep(buffer_.data() + position_, until - position_);
    begun_ |= until > position_;
    position_ = until;
    Filled filled = Filled::kSome;
    if (end == std::string::npos) filled = fill();
    if (filled == Filled::kNotYet) return Next::kNotYet;
    if (filled == Filled::kEnd && (!begun_ || !error_.empty())) return Next::kEnd;
    if (end == std::string::npos && filled == Filled::kSome) continue;
    if (end != std::string::npos) ++position_;
    begun_ = false;
    task = std::exchange(task_, {});
    return Next::kTask;
  }
}

}  // namespace freehold::cli::workers
