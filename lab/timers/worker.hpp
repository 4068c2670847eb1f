// SPDX-License-Identifier: MIT
// One measurement of `freehold timers`. The command calls measure(), which starts `freehold timers-worker WORDS…` in a fresh
// process; that calls worker_main(). The worker's command is not for people and not in the help.
#pragma once
#include <string>
#include <vector>

#include "lab/experiment/measure.hpp"
#include "lab/timers/job.hpp"

namespace freehold::cli::timers {

// Does the job and sends the Report. `arguments` are the words behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

// Preloads `library` unless it is empty. Throws Failure if no process can be started.
[[nodiscard]] Measured<Report> measure(const Job& job, const std::string& library, Interrupts& interrupts);

}  // namespace freehold::cli::timers
