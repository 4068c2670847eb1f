// SPDX-License-Identifier: MIT
#include "cli/support/interrupts.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "cli/support/failure.hpp"

namespace freehold::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interrupts::Interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) ::sigaddset(&set, signal);
  }
  file_ = FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!file_) throw Failure(kExitRefused, fmt::format("cannot wait for signals: {}", error_text(errno)));
  ::sigprocmask(SIG_BLOCK, &set, &original_);
}

Interrupts::~Interrupts() { ::sigprocmask(SIG_SETMASK, &original_, nullptr); }

int Interrupts::arrived() noexcept {
  signalfd_siginfo info{};
  if (arrived_ == 0 && ::read(file_.get(), &info, sizeof info) == sizeof info) arrived_ = static_cast<int>(info.ssi_signo);
  return arrived_;
}

}  // namespace freehold::cli
