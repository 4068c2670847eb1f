// The side of the experiment that is measured: `freehold timers-worker WORDS…`, started by `freehold timers` in a fresh
// process. Not for people, and not in the help.
#pragma once
#include <string>
#include <vector>

#include "cli/support/worker_process.hpp"
#include "cli/timers/job.hpp"

namespace freehold::cli::timers {

inline constexpr const char* kWorkerCommand = "timers-worker";

// Runs the job and hands over the Report. `arguments` are those behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

using Measured = std::variant<Report, NoReport, Interrupted>;
// One measurement in a worker, under `library` if it is not empty. Throws Failure if no process can be started.
[[nodiscard]] Measured measure(const Job& job, const std::string& library, Interrupts& interrupts);

}  // namespace freehold::cli::timers
