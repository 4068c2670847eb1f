// SPDX-License-Identifier: MIT
// Runs the plan, one command's experiment after the other. Keeps the finished measurements when interrupted.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/articles/plan.hpp"
#include "lab/experiment/series.hpp"
#include "lab/pools/results.hpp"
#include "lab/scale/results.hpp"
#include "lab/timers/results.hpp"

namespace freehold::cli::articles {

// As the plan's parts.
struct Results : RunRecord {
  Plan plan;
  std::optional<pools::Results> crc, several, fewer, alone;
  std::optional<timers::Results> timers;
  std::optional<scale::Results> scaling, one_cpu, blocks;
};

[[nodiscard]] Results run_experiment(const Plan& plan, Interrupts& interrupts, Progress& progress);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);

}  // namespace freehold::cli::articles
