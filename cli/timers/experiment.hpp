// Carries a plan out, set after set. Keeps what it has when interrupted, and goes on when a structure fails.
#pragma once
#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "cli/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

}  // namespace freehold::cli::timers
