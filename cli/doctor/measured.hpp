// What the cells of an experiment say by arithmetic alone: medians over their trials.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "freehold/doctor/experiment.hpp"

namespace freehold::cli::doctor {

// Of the cells' trials; none: no such cell, or none of its trials ended well.
[[nodiscard]] std::vector<double> costs_of(const freehold::doctor::Cell& cell);
[[nodiscard]] std::optional<double> median_cost(const freehold::doctor::Cell* cell);
[[nodiscard]] std::optional<std::uint64_t> median_peak(const freehold::doctor::Cell* cell);
// CPUs that were kept busy on the average.
[[nodiscard]] std::optional<double> busy_cpus(const freehold::doctor::Cell* cell);
[[nodiscard]] std::optional<double> page_faults_per_second(const freehold::doctor::Cell* cell);
// Share of the wall time that a quota kept it from running.
[[nodiscard]] std::optional<double> throttled_share(const freehold::doctor::Cell* cell);

// How many times as fast as the same variant in the sweep's first setting; none: it was not measured there. Copies count
// with the work of all.
[[nodiscard]] std::optional<double> speed(const freehold::doctor::Experiment& experiment,
                                          const freehold::doctor::Cell& cell);
// What the best allocator would reach: the width of the setting, relative to that of the sweep's first.
[[nodiscard]] double ideal_speed(const freehold::doctor::Experiment& experiment, const freehold::doctor::Setting& setting);

struct Slowdown {
  unsigned copies = 0;
  double ratio = 1;  // the CPU time that each needs divided by that of one alone: who waits for memory is busy
};
// Of the program as it is, as the most copies that were tried.
[[nodiscard]] std::optional<Slowdown> copies_slowdown(const freehold::doctor::Experiment& experiment);

// Whether there is anything to show of it: a trial in the sweep, or a failure.
[[nodiscard]] bool was_tried(const freehold::doctor::Experiment& experiment, std::size_t variant);

// The cell in which the program as it is did not come to a good end, if it never did in that setting.
[[nodiscard]] const freehold::doctor::Cell* own_failure(const freehold::doctor::Experiment& experiment);

}  // namespace freehold::cli::doctor
