// One measurement: a scale-worker under the allocator, and the check that the allocator was the one that was asked for.
#pragma once
#include <chrono>
#include <string>
#include <variant>

#include "cli/scale/job.hpp"
#include "cli/support/worker_process.hpp"

namespace freehold::cli::scale {

using Measured = std::variant<Report, NoReport, Interrupted>;

// `library` is an absolute path, or empty for the system's allocator. Throws Failure if no process can be started.
[[nodiscard]] Measured measure(const Job& job, const std::string& library, std::chrono::seconds limit,
                               Interrupts& interrupts);

}  // namespace freehold::cli::scale
