// SPDX-License-Identifier: MIT
// Runs the pools' experiment as planned. Keeps the finished measurements when interrupted; goes on when a pool fails.
#pragma once
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/pools/results.hpp"

namespace freehold::cli::pools {

[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::pools
