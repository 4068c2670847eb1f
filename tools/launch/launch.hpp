// SPDX-License-Identifier: MIT
// Starts a program with a preloaded library. Where nothing is asked of the command at the end or at a report, it becomes the
// program by exec, so that signals, exit status and job control work as usual. Otherwise the command stays as the parent. It
// forwards every signal that can be forwarded, stops and continues with the program, and ends as the program ended.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "freehold/alloc/observe/stats.hpp"

namespace freehold::inline tools {

struct Launch {
  std::string program;                                          // path of the file to execute
  std::vector<std::string> arguments;                           // argv, the name as the user typed it first
  std::string library{};                                        // to preload; empty: none
  std::vector<std::pair<std::string, std::string>> settings{};  // environment variables besides
};

struct Outcome {
  std::int64_t process = 0;  // its number
  int wait_status = 0;       // as of waitpid
  double elapsed_seconds = 0;
  double user_seconds = 0;
  double system_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;  // the program's, not its children's
  bool has_stats = false;            // false: it did not load the library, or did not end by exit()
  alloc::Stats stats{};
};

// Becomes the program. Returns only if that failed, with the errno.
[[nodiscard]] int execute(const Launch& launch);
// Throws the Failure.
[[noreturn]] void cannot_start(const Launch& launch, int error);
// Becomes the program. Throws Failure if that fails.
[[noreturn]] void become(const Launch& launch);
// Runs the program to its end. Throws Failure if it could not be started.
[[nodiscard]] Outcome supervise(const Launch& launch);
// Ends this process as the program ended: with its exit code, or by its signal (128 + n where signals do not kill: as
// process 1 of a container).
[[noreturn]] void end_like(int wait_status);

}  // namespace freehold::inline tools
