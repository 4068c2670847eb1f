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
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::workers {
namespace {

constexpr const char* kHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";

}  // namespace

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

JobLog::JobLog(const std::string& path, bool resume) : path_(path) {
  if (path.empty()) return;
  FileDescriptor file = open_log(path);
  file_ = ::fdopen(::fcntl(file.get(), F_DUPFD_CLOEXEC, 3), "a+");
  const off_t whole = file_ != nullptr && resume ? read_former() : 0;
  // A line without an end does not count, and must not become the beginning of another one. A pipe has no length.
  struct stat info{};
  const bool is_file = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (file_ == nullptr || (is_file && ::ftruncate(file.get(), whole) != 0) ||
      (whole == 0 && std::fprintf(file_, "%s\n", kHead) < 0) || std::fflush(file_) != 0)
    throw Failure(kExitRefused, fmt::format("--joblog: cannot write {}: {}", printable(path), error_text(errno)));
}

// Returns the bytes of whole lines.
off_t JobLog::read_former() {
  char* line = nullptr;
  std::size_t room = 0;
  off_t whole = 0;
  std::rewind(file_);
  for (ssize_t n; (n = ::getline(&line, &room, file_)) > 0 && line[n - 1] == '\n'; whole += n) {
    if (whole != 0)
      ended_.insert(std::strtoull(line, nullptr, 10));
    else if (std::string_view(line, static_cast<std::size_t>(n - 1)) != kHead) {
      std::free(line);
      throw Failure(kExitRefused, fmt::format("--joblog: {} is no job log, so --resume cannot go on", printable(path_)));
    }
  }
  std::free(line);
  return whole;
}

JobLog::~JobLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void JobLog::add(const JobRecord& job) {
  if (file_ == nullptr) return;
  std::string command;  // a job is one line
  for (const char c : job.command) command += c == '\n' ? std::string("\\n") : std::string(1, c);
  fmt::print(file_, "{}\t:\t{:.3f}\t{:10.3f}\t{}\t{}\t{}\t{}\t{}\n", job.number, job.begin, job.runtime, job.sent,
             job.received, job.exit_value, job.signal, command);
  if (std::fflush(file_) != 0)
    throw Failure(kExitRefused, fmt::format("--joblog: cannot write {}: {}", printable(path_), error_text(errno)));
}

}  // namespace freehold::cli::workers
