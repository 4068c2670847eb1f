// Carries a plan out: calibrates how much work a unit of time is, then measures set after set. Keeps what it has when
// interrupted, and goes on when an allocator fails.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "cli/scale/results.hpp"
#include "cli/support/interrupts.hpp"

namespace freehold::cli::scale {

struct Step {
  std::size_t done = 0;
  std::size_t of = 0;  // 0 while calibrating
  std::string what;    // "allocate, 4 threads, freehold"
};
using Watch = std::function<void(const Step&)>;

// Pre: settings have a subject, a test and a mode. Calls `watch` before every measurement.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, const Watch& watch);

}  // namespace freehold::cli::scale
