// SPDX-License-Identifier: MIT
#include "cli/support/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/support/failure.hpp"

namespace freehold::cli {
namespace {

constexpr std::size_t kNarrowest = 20;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest ? size.ws_col : 80;
}

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { wipe(); }

void Progress::show(std::size_t done, std::size_t of, const std::string& what) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (done == 0) counting_since_ = now;
  std::string line = of == 0 ? fmt::format("calibrating: {}", what) : fmt::format("{:>4}/{}  {}", done + 1, of, what);
  if (of > 0 && done > 0) {
    const double per_step = std::chrono::duration<double>(now - counting_since_).count() / static_cast<double>(done);
    line += fmt::format("  ({} left)", duration_text(per_step * static_cast<double>(of - done)));
  }
  show(line);
}

void Progress::show(const std::string& line) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K{}", printable(line).substr(0, terminal_width() - 1));
  std::fflush(stderr);
}

void Progress::wipe() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

std::string duration_text(double seconds) {
  const long whole = std::max(1L, std::lround(seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace freehold::cli
