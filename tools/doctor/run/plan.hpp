// SPDX-License-Identifier: MIT
// The tasks of an experiment, and how many runs of each fit into the time that there is. Pure functions.
//
// Time goes to the tasks by importance: first the trials that a verdict needs (the program as it is, on one CPU and on all),
// then those that tell most for their time. A task that ran less often than wished gets its turn while time remains.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/settings.hpp"

namespace freehold::doctor {

inline constexpr unsigned kMostRounds = 9;  // of short programs: medians get no better for it

// The settings with one copy, fewest CPUs or threads first. `cpus`: those that the caller may use.
[[nodiscard]] std::vector<Setting> sweep_of(const Settings& settings, unsigned cpus);

// Something that can be run, any number of times: a cell of the experiment, another trial, or with the probe.
struct Task {
  std::size_t variant = 0;
  Setting setting;
  bool recording = false;
  bool sampled = false;   // its instructions, not its time
  unsigned delay_ns = 0;  // that each call of malloc and free takes longer; 0: as it is
  bool crowded = false;   // all threads on one CPU

  [[nodiscard]] bool is_cell() const noexcept { return is_trial() && delay_ns == 0 && !crowded; }
  [[nodiscard]] bool is_trial() const noexcept { return !recording && !sampled; }
  friend bool operator==(const Task&, const Task&) = default;
};

// That a task be done so many times.
struct Goal {
  std::size_t task = 0;
  unsigned runs = 0;
  bool essential = false;  // the budget cannot refuse it
  bool decides = false;    // before it is reached no verdict is formed
};

// All there is to do.
// `record`: the probe can be loaded; `delay`: and what delays calls.
[[nodiscard]] std::vector<Task> tasks_of(const Settings& settings, std::span<const Variant> variants, unsigned cpus,
                                         bool record, bool delay);
// In the order of importance. `malloc_is_idle`: no other one can help.
[[nodiscard]] std::vector<Goal> goals_of(std::span<const Task> tasks, std::span<const Variant> variants,
                                         bool malloc_is_idle = false);
// With a number of rounds instead of a budget.
[[nodiscard]] std::vector<Goal> goals_of(std::span<const Task> tasks, unsigned rounds);

// For each task the runs that it shall have in the end: `done` and what of the goals fits into `seconds_left`, where one
// run of it takes `seconds` of the task. No limit: seconds_left < 0.
[[nodiscard]] std::vector<unsigned> targets_of(std::span<const Goal> goals, std::span<const unsigned> done,
                                               std::span<const double> seconds, double seconds_left);

}  // namespace freehold::doctor
