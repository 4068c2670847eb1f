// SPDX-License-Identifier: MIT
// Tables of scenarios: the shipped algorithm passes each of them, and a mutant fails in one.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/explore.hpp"

namespace freehold::sim {

struct Scenario {
  Options options;  // the bounds within which it is explored, and its name within the model
  void (*run)(Execution&);
};
using Scenarios = std::vector<Scenario>;

// The bounds for algorithms with a lock, which has its own model: here no thread spins.
inline Options within(const char* name, unsigned preemptions, unsigned stale, unsigned cpus = 0) {
  return {.name = name,
          .cpus = cpus,
          .preemptions = preemptions,
          .stale = stale,
          .executions = 20'000'000,
          .decide = Decide::kAlternative};
}
// The same for so many random schedules.
inline Options at_random(const char* name, unsigned stale, unsigned depth, std::uint64_t executions, unsigned cpus = 0) {
  Options options = within(name, 0, stale, cpus);
  options.strategy = Strategy::kPct;
  options.depth = depth;
  options.executions = executions;
  return options;
}

inline void expect_all_ok(const std::string& model, const Scenarios& scenarios) {
  for (auto [options, run] : scenarios) {
    options.name.insert(0, model + "/");
    const Result result = explore(options, run);
    EXPECT_TRUE(result.ok()) << result;
  }
}

// Returns what the first scenario says that notices the mutant; kNone if the mutant survives all. Each has at most so many
// preemptions, and stale reads if that is not 0.
inline Failure first_failure(const std::string& model, const Scenarios& scenarios, unsigned preemptions,
                             unsigned stale = 0) {
  for (auto [options, run] : scenarios) {
    options.name.insert(0, model + "/mutant/");
    options.preemptions = std::min(options.preemptions, preemptions);
    if (stale != 0) options.stale = stale;
    options.print = false;
    if (const Result result = explore(options, run); result.failure != Failure::kNone) return result.failure;
  }
  return Failure::kNone;
}

}  // namespace freehold::sim
