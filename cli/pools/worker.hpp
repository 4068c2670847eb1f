// The side of the experiments that is measured: `freehold pools-worker WORDS…`, started by `freehold pools` in a fresh
// process. Not for people, and not in the help.
#pragma once
#include <string>
#include <vector>

#include "cli/pools/job.hpp"
#include "cli/support/worker_process.hpp"

namespace freehold::cli::pools {

inline constexpr const char* kWorkerCommand = "pools-worker";

// Runs the job and hands over the Report. `arguments` are those behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

using Measured = std::variant<Report, NoReport, Interrupted>;
// One measurement in a worker. Throws Failure if no process can be started.
[[nodiscard]] Measured measure(const Job& job, Interrupts& interrupts);

}  // namespace freehold::cli::pools
