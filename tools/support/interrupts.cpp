// SPDX-License-Identifier: MIT
#include "tools/support/interrupts.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {
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

constexpr std::size_t kNarrowest = 20;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest ? size.ws_col : 80;
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

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { wipe(); }

void Progress::show(std::size_t done, std::size_t of, const std::string& what) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (of > 0 && expected_ > 0) {
    if (done == 0 && last_ > 0) before_ = last_ + 1;
    last_ = done += before_;
    of = expected_;
  }
  if (of > 0 && done == 0) counting_since_ = now;
  std::string line = of == 0 ? fmt::format("calibrating: {}", what) : fmt::format("{:>4}/{}  {}", done + 1, of, what);
  if (of > 0 && done > 0) {
    const double per_step = std::chrono::duration<double>(now - counting_since_).count() / static_cast<double>(done);
    line += fmt::format("  ({} left)", duration_text(per_step * static_cast<double>(of - done)));
  }
  show(line);
}

void Progress::show(const std::string& line) {
  if (!terminal_) return;
  say(fmt::format("\r\033[K{}", printable(line).substr(0, terminal_width() - 1)));
  std::fflush(stderr);
}

void Progress::wipe() {
  if (terminal_) say("\r\033[K");
}

std::string duration_text(double seconds) {
  const long whole = std::max(1L, std::lround(seconds));
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace freehold::inline tools
