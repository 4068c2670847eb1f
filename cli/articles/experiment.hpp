// Carries the plan out, one command's experiment after the other. Keeps what it has when interrupted.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/articles/plan.hpp"
#include "cli/pools/results.hpp"
#include "cli/scale/results.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/progress.hpp"
#include "cli/timers/results.hpp"

namespace freehold::cli::articles {

// As the plan's parts.
struct Results {
  Plan plan;
  Machine machine;
  std::string date;
  bool complete = true;  // false: interrupted
  double seconds = 0;
  std::optional<pools::Results> crc, several, fewer, alone;
  std::optional<timers::Results> timers;
  std::optional<scale::Results> scaling, blocks;
};

[[nodiscard]] Results run_experiment(const Plan& plan, Interrupts& interrupts, Progress& progress);
// Measurements that failed, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);

}  // namespace freehold::cli::articles
