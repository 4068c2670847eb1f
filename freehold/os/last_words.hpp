// SPDX-License-Identifier: MIT
// The end of a process in which no library's function may be called: by the system's calls alone, which a sanitizer that is
// still starting cannot intercept. Any thread.
#pragma once
#include <unistd.h>

#include <cstddef>

#include "freehold/os/system_call.hpp"

namespace freehold::os {

// Writes the line to standard error and ends the process.
inline void end_with_last_words(const char* line, std::size_t bytes, int status) noexcept {
  (void)kernel::write(STDERR_FILENO, line, bytes);
  (void)system_call(SYS_exit_group, status);
}

}  // namespace freehold::os
