// SPDX-License-Identifier: MIT
// Scenarios of threads with a pool on the simulated machine, for any pool.
//
// The oracles: every slot carries a plain stamp that its holder writes and finds again, so a slot handed out twice, or
// before its former holder was done with it, is a data race or a wrong stamp. A pool that promises to find the last slot may
// answer "none" only if there was none. When all threads have ended, every slot is found again, each once, and the pool's
// own check_invariants() holds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/explore.hpp"
#include "tests/model/pool_subject.hpp"

namespace freehold::model {

struct Scenario {
  const char* name;
  unsigned threads;
  void (*body)(sim::Execution& run, const Subject& subject);
};

// Two threads and three; and those that are too large for all interleavings.
const std::vector<Scenario>& small_scenarios();
const std::vector<Scenario>& large_scenarios();

// Within which bounds.
struct Effort {
  unsigned preemptions_of_two = 4;
  unsigned preemptions_of_three = 2;
  unsigned stale = 1;
  std::uint64_t random_executions = 10'000;  // random executions of each large scenario
  bool print = true;
};

// All of a scenario within these bounds.
sim::Result explore(const Scenario& scenario, const Subject& subject, const Effort& effort);
// At random.
sim::Result explore_randomly(const Scenario& scenario, const Subject& subject, const Effort& effort);

// Runs scenarios until one fails, `briefly` the cheapest only. The result of that one, or of the last.
sim::Result hunt(const Subject& mutant, const Effort& effort, bool briefly = false);

}  // namespace freehold::model
