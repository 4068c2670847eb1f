// SPDX-License-Identifier: MIT
// Runs the timers' experiment as planned. Keeps the finished measurements when interrupted; goes on when a structure fails.
#pragma once
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::timers
