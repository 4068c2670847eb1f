// The side of the experiment that is measured: `freehold scale-worker TEST MODE SOURCE WORKERS ITERATIONS UNITS`, started
// by `freehold scale` in a fresh process, perhaps with a preloaded allocator. Not for people, and not in the help.
#pragma once
#include <string>
#include <vector>

#include "cli/scale/job.hpp"

namespace freehold::cli::scale {

inline constexpr const char* kWorkerCommand = "scale-worker";

[[nodiscard]] std::vector<std::string> worker_arguments(const Job& job);
// What each worker of the job does.
[[nodiscard]] Body body_of(const Job& job);
// Runs the job and hands over the Report. `arguments` are those behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

}  // namespace freehold::cli::scale
