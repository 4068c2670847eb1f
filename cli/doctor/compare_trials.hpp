// SPDX-License-Identifier: MIT
// Two commands, run in turns: before, after; after, before; and so on, so that what drifts in the machine hits both alike.
#pragma once
#include <string>
#include <vector>

#include "cli/doctor/comparison.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"

namespace freehold::cli::doctor {

struct Contest {
  std::vector<std::string> before, after;  // commands; not empty
  double budget_s = 0;                     // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;
};

// Throws Failure if one of them cannot be run, fails or does not end, or if it was interrupted before the first round ended.
[[nodiscard]] Comparison compare(const Contest& contest, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::doctor
