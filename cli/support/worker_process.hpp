// Measurements in fresh processes: starts this executable anew as a worker, perhaps under a preloaded library, and waits for
// the bytes of its report. A worker that hangs is killed; so is one that is under way at Ctrl-C.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "cli/support/interrupts.hpp"

namespace freehold::cli {

// Why there is no report, in a few words: "killed by signal 11", "does not replace malloc ...".
struct NoReport {
  std::string why;
};
struct Interrupted {};
using WorkerEnd = std::variant<std::string, NoReport, Interrupted>;

// Starts `freehold WORDS…`. `library` is an absolute path, or empty for none; nothing else is preloaded.
// Returns what the worker wrote to its report. Throws Failure if no process can be started.
[[nodiscard]] WorkerEnd run_worker(std::vector<std::string> words, const std::string& library, std::chrono::seconds limit,
                                   Interrupts& interrupts);

// In the worker: hands the report to the one who started it. Returns whether that worked.
[[nodiscard]] bool write_report(const void* report, std::size_t bytes);

}  // namespace freehold::cli
