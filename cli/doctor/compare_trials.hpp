// SPDX-License-Identifier: MIT
// The command's side of comparing two commands: finds the programs and the probe, shows how far it has come, and says in
// sentences what could not be done. freehold/doctor/run/paired_trials.hpp does the work.
#pragma once
#include <string>
#include <vector>

#include "cli/doctor/comparison.hpp"
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"

namespace freehold::cli::doctor {

struct CompareRequest {
  std::vector<std::string> before, after;  // commands; not empty
  double budget_s = 0;                     // time for all runs; 0: `rounds` decides
  unsigned rounds = 0;
};

// Throws Failure if one of them cannot be run, fails or does not end, or if it was interrupted before the first round ended.
[[nodiscard]] ComparisonReport compare(const CompareRequest& request, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::doctor
