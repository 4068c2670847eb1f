// One measurement: starts this executable anew as a scale-worker, under the allocator, waits for its report, and checks that
// the allocator was the one that was asked for. A worker that hangs is killed; so is one that is under way at Ctrl-C.
#pragma once
#include <chrono>
#include <string>
#include <variant>

#include "cli/scale/job.hpp"
#include "cli/support/interrupts.hpp"

namespace freehold::cli::scale {

// Why there is no report, in a few words: "killed by signal 11", "does not replace malloc ...".
struct NoReport {
  std::string why;
};
struct Interrupted {};
using Measured = std::variant<Report, NoReport, Interrupted>;

// `library` is an absolute path, or empty for the system's allocator. Throws Failure if no process can be started.
[[nodiscard]] Measured measure(const Job& job, const std::string& library, std::chrono::seconds limit,
                               Interrupts& interrupts);

}  // namespace freehold::cli::scale
