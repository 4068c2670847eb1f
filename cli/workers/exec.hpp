// SPDX-License-Identifier: MIT
// freehold workers --exec: runs a command for each argument, as xargs -P and GNU parallel do, in worker processes that are
// kept. Each job's output is written in one piece, when the job ends or, with keep_order, in the order of the arguments.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/workers/task_reader.hpp"
#include "freehold/process.hpp"

namespace freehold::cli::workers {

struct ExecSettings {
  ProcessPoolOptions pool;             // without a component: exec_pool() completes it
  std::string command;                 // with places for the argument, template.hpp
  std::vector<std::string> arguments;  // or those of
  std::string tasks;                   // a file, or "-"
  Framing framing = Framing::kLines;   // of that
  bool keep_order = false;
  bool show_progress = false;
  bool dry_run = false;
  bool resume = false;
  std::string job_log;
  unsigned retries = 1;  // runs of a job until one succeeds
  std::chrono::milliseconds retry_delay{0};
};

inline constexpr int kExitManyFailed = 101;  // more than 100 jobs; up to there it is their number
inline constexpr int kExitExecError = 255;   // anything else

// Returns the exit code. Throws Failure.
[[nodiscard]] int run_exec(const ExecSettings& settings);

}  // namespace freehold::cli::workers
