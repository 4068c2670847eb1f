// SPDX-License-Identifier: MIT
// One measurement of `freehold scale`. The command calls measure(), which starts `freehold scale-worker TEST MODE SOURCE
// WORKERS ITERATIONS UNITS` in a fresh process, if wanted with a preloaded allocator; that calls worker_main(). The worker's
// command is not for people and not in the help.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lab/experiment/measure.hpp"
#include "lab/scale/job.hpp"

namespace freehold::cli::scale {

// The work of one worker of the job.
[[nodiscard]] Body body_of(const Job& job);
// Does the job and sends the Report. `arguments` are the words behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

// `library` is an absolute path, or empty for the system's allocator; the report is refused if malloc came from elsewhere.
// `milliseconds` is the time that the job should take; much longer is a time-out. Throws Failure if no process can be
// started.
[[nodiscard]] Measured<Report> measure(const Job& job, const std::string& library, std::uint32_t milliseconds,
                                       Interrupts& interrupts);

}  // namespace freehold::cli::scale
