// SPDX-License-Identifier: MIT
// One measurement of `freehold pools`. The command calls measure(), which starts `freehold pools-worker WORDS…` in a fresh
// process; that calls worker_main(). The worker's command is not for people and not in the help.
#pragma once
#include <string>
#include <vector>

#include "lab/experiment/measure.hpp"
#include "lab/pools/job.hpp"

namespace freehold::cli::pools {

// Does the job and sends the Report. `arguments` are the words behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

// Throws Failure if no process can be started.
[[nodiscard]] Measured<Report> measure(const Job& job, Interrupts& interrupts);

}  // namespace freehold::cli::pools
