// SPDX-License-Identifier: MIT
#include "cli/support/interrupts.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "cli/support/failure.hpp"

namespace freehold::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

constexpr std::int64_t kSameInterrupt = 1'000'000'000;  // nanoseconds

std::int64_t now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

std::atomic<std::int64_t> g_arrived_at{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // a signal handler reads it

void end_if_repeated(int signal) {
  if (now() - g_arrived_at.load(std::memory_order_relaxed) < kSameInterrupt) return;  // relaxed: of this thread
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

Interrupts::Interrupts() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) ::sigaddset(&signals_, signal);
  }
  file_ = FileDescriptor(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!file_) throw Failure(kExitRefused, fmt::format("cannot wait for signals: {}", error_text(errno)));
  ::sigprocmask(SIG_BLOCK, &signals_, &original_);
}

Interrupts::~Interrupts() {
  // Further ones that came while the object lived, however long ago: unblocked, they would cost the results.
  signalfd_siginfo info{};
  while (arrived_ != 0 && ::read(file_.get(), &info, sizeof info) == sizeof info) continue;
  struct sigaction action{};
  action.sa_handler = end_if_repeated;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (arrived_ != 0 && ::sigismember(&signals_, signal) == 1) ::sigaction(signal, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &original_, nullptr);
}

int Interrupts::arrived() noexcept {
  signalfd_siginfo info{};
  if (arrived_ == 0 && ::read(file_.get(), &info, sizeof info) == sizeof info) {
    g_arrived_at.store(now(), std::memory_order_relaxed);  // relaxed: of this thread
    arrived_ = static_cast<int>(info.ssi_signo);
  }
  return arrived_;
}

}  // namespace freehold::cli
