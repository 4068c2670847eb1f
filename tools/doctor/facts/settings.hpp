// SPDX-License-Identifier: MIT
// The user's request, as plain data; the command fills it from its options.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// The kind of work: more threads share the same, or bring more.
enum class Work : std::uint8_t { kAuto, kFixed, kPerThread };

// A program that serves until it is told to end.
struct Server {
  double seconds = 0;      // how long it runs after it is ready; 0: it ends by itself, or with its load
  std::string load;        // shell command that uses it; empty: none
  std::string ready;       // shell command that succeeds once it serves; empty: it listens
  std::string throughput;  // regular expression: its first group in the load's output is units a second; empty: none
  [[nodiscard]] bool used() const noexcept { return seconds > 0 || !load.empty(); }
};

struct Settings {
  std::vector<std::string> command;  // the program as typed, and its arguments; an argument may hold {n}
  ParallelismControl parallelism = ParallelismControl::kAffinity;
  std::string parallelism_text;  // OMP_NUM_THREADS, or "-t {n}"; empty for affinity
  std::vector<unsigned> widths;  // the sweep: threads, or CPUs for affinity; ascending
  Work work = Work::kAuto;
  double budget_s = 0;           // time for all runs; 0: `rounds` decides
  bool keeps_budget = false;     // about memory: what does not fit in is left out; else everything is run twice at least
  unsigned rounds = 0;           // how often everything is run; 0: the budget decides
  std::string input;             // file for standard input; empty: /dev/null
  bool allow_failure = false;    // the first run's exit status is the right one
  bool ahead_of_others = false;  // where others take CPUs from the runs; else these take a fair share
  Server server;
};

}  // namespace freehold::doctor
