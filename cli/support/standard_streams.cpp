// SPDX-License-Identifier: MIT
#include "cli/support/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/support/failure.hpp"

namespace freehold::cli {

namespace {
bool g_output_was_closed = false;  // and is /dev/null now
}

void print_to_stdout(const std::string& text) {
  if (g_output_was_closed)
    throw Failure(kExitRefused, fmt::format("cannot write to standard output: {}", error_text(EBADF)));
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Failure(kExitRefused, fmt::format("cannot write to standard output: {}", error_text(errno)));
  }
}

void open_standard_files() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    g_output_was_closed = g_output_was_closed || fd == STDOUT_FILENO;
    if (fd > STDERR_FILENO || fd < 0) {
      ::close(fd);
      return;
    }
  }
}

}  // namespace freehold::cli
