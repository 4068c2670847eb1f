// SPDX-License-Identifier: MIT
// One measurement in a worker process, seen from both sides. The experiment calls measure_in_worker(); the worker calls
// run_as_worker(). Between them a Report travels as bytes: a trivially copyable struct that begins with `magic`.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tools/support/interrupts.hpp"

namespace freehold::lab {

// Runs one measurement in a fresh process: starts this executable again as a worker, if wanted with a preloaded library, and
// reads the bytes of its report from a pipe. Kills a worker that exceeds its time limit, or that still runs at Ctrl-C.

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

template <class Report>
using Measured = std::variant<Report, NoReport, Interrupted>;

// Runs `freehold COMMAND WORDS…`; see run_worker(). complaint(report) says why the report cannot be used; empty: it can.
// Throws Failure if no process can be started.
template <class Report>
[[nodiscard]] Measured<Report> measure_in_worker(const char* command, std::vector<std::string> words,
                                                 const std::string& library, std::chrono::seconds limit,
                                                 Interrupts& interrupts, auto complaint) {
  static_assert(std::is_trivially_copyable_v<Report>);
  words.insert(words.begin(), command);
  WorkerEnd end = run_worker(std::move(words), library, limit, interrupts);
  if (auto* none = std::get_if<NoReport>(&end)) return std::move(*none);
  const auto* bytes = std::get_if<std::string>(&end);
  if (bytes == nullptr) return Interrupted{};
  Report report;
  if (bytes->size() == sizeof report) std::memcpy(static_cast<void*>(&report), bytes->data(), sizeof report);
  if (bytes->size() != sizeof report || report.magic != Report::kMagic) return NoReport{"an unreadable report"};
  if (std::string why = complaint(report); !why.empty()) return NoReport{std::move(why)};
  return report;
}

// The frame of a worker's main(): dies with its parent, prints an exception as the one line that the parent shows, and ends
// the process without destructors, so that memory which the measurement still holds costs no more time. Returns the exit
// code if `work` throws.
int run_worker_main(const std::function<bool()>& work);

// measure() -> Report.
int run_as_worker(auto measure) {
  return run_worker_main([&measure] {
    const auto report = measure();
    return write_report(&report, sizeof report);
  });
}

}  // namespace freehold::lab
