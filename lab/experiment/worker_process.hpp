// SPDX-License-Identifier: MIT
// Runs one measurement in a fresh process: starts this executable again as a worker, if wanted with a preloaded library, and
// reads the bytes of its report from a pipe. Kills a worker that exceeds its time limit, or that still runs at Ctrl-C.
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

// Starts `freehold WORDS…` and returns the bytes of its report. `library` is an absolute path, or empty for none; no other
// library is preloaded. Throws Failure if no process can be started.
[[nodiscard]] WorkerEnd run_worker(std::vector<std::string> words, const std::string& library, std::chrono::seconds limit,
                                   Interrupts& interrupts);

// In the worker: sends the report to the parent process. Returns whether that worked.
[[nodiscard]] bool write_report(const void* report, std::size_t bytes);

}  // namespace freehold::cli
