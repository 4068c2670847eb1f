// SPDX-License-Identifier: MIT
// Runs the scaling experiment as planned: first calibrates how many units of work fill the wished time, then measures set
// after set. Keeps the finished measurements when interrupted; goes on when an allocator fails.
#pragma once
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/scale/results.hpp"

namespace freehold::cli::scale {

// Pre: settings have a subject, a test and a mode.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::scale
