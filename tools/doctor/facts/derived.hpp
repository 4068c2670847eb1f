// SPDX-License-Identifier: MIT
// Figures that follow from an experiment's trials by arithmetic: medians over a cell, speeds, what copies need. Each figure
// has one function here, which the verdict and everything that shows it use.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// The median of `values`. Pre: not empty. Of an even number the mean of the two in the middle.
[[nodiscard]] double median(std::vector<double> values);

// The median of `figure`(trial) over a cell. Pre: it has trials.
template <class Figure>
[[nodiscard]] double median_of(const Cell& cell, const Figure& figure) {
  std::vector<double> values;
  for (const Trial& trial : cell.trials) values.push_back(static_cast<double>(std::invoke(figure, trial)));
  return median(std::move(values));
}

// Medians over a cell. Pre: it has trials.
[[nodiscard]] double cost(const Cell& cell);
[[nodiscard]] double cpu_seconds(const Cell& cell);
[[nodiscard]] double peak_bytes(const Cell& cell);
[[nodiscard]] double page_faults(const Cell& cell);
inline constexpr double kAsManyFaults = 0.8;  // share of the faults with another allocator: it does not change them
[[nodiscard]] double page_faults_per_second(const Cell& cell);
// CPUs that were kept busy on the average.
[[nodiscard]] double busy_cpus(const Cell& cell);
// CPUs that its threads had or were ready for, on the average.
[[nodiscard]] double wanted_cpus(const Cell& cell);
// The share of the CPUs' time that no thread was ready for.
// The share of all CPUs' time in which OpenMP's threads spun because there was no work for them: it counts as idle.
[[nodiscard]] double spun_share(const Experiment& experiment, const Cell& all);
[[nodiscard]] double idle_share(const Cell& cell);
// Share of the CPU time that is the kernel's.
[[nodiscard]] double system_share(const Cell& cell);
// Share of the wall time that a quota kept it from running.
[[nodiscard]] double throttled_share(const Cell& cell);

// One of these; none: there is no such cell, or none of its trials ended well.
[[nodiscard]] std::optional<double> if_measured(double (*figure)(const Cell&), const Cell* cell);

[[nodiscard]] std::vector<double> costs_of(const Cell& cell);

// Standard errors to either side of a value, between which nine of ten lie.
inline constexpr double kNineOfTen = 1.645;

// The cell, if any of its trials ended well; null otherwise.
[[nodiscard]] const Cell* measured(const Experiment& experiment, std::size_t variant, const Setting& setting) noexcept;

// How many times as fast as the same variant in the sweep's first setting; none: it was not measured there. Copies count
// with the work of all.
[[nodiscard]] std::optional<double> speed(const Experiment& experiment, const Cell& cell);
// Returns the speed of a program that loses nothing: the width of the setting, relative to that of the sweep's first.
[[nodiscard]] double ideal_speed(const Experiment& experiment, const Setting& setting);

// How many times the work of the sweep's first setting the cell's setting does. Threads with work of their own may have
// less of it than the first one; then CPU time grows by less than the threads. Threads that disturb each other let it grow
// by more, which is no work.
[[nodiscard]] double growth_of_work(const Experiment& experiment, const Cell& cell);

// Share of the CPU time of `all` that is the kernel's beyond what so many threads would need if each needed what one needs
// alone: that is no work of theirs, but what they do to each other, as waking.
[[nodiscard]] double kernel_beyond_work(const Cell& alone, const Cell& all, double threads);

// The cells that say what copies cost each other: the most copies of the program as it is, and one of them alone. Null: it
// was not measured.
struct CellsOfCopies {
  const Cell* most = nullptr;
  const Cell* single = nullptr;
};
[[nodiscard]] CellsOfCopies copies_of(const Experiment& experiment);

struct Slowdown {
  unsigned copies = 0;
  double ratio = 1;  // the CPU time that each needs divided by that of one alone: a process that waits for memory is busy
};
// Takes the program as it is, as the most copies that were tried; none: it was not copied. Wall time would say the same, but
// also that other programs had the CPUs.
[[nodiscard]] std::optional<Slowdown> slowdown_of_copies(const Experiment& experiment);

// Says whether there is anything to show of it: a trial in the sweep, or a failure.
[[nodiscard]] bool was_tried(const Experiment& experiment, std::size_t variant);

// The cell in which the program as it is did not come to a good end, if it never did in that setting.
[[nodiscard]] const Cell* own_failure(const Experiment& experiment);

}  // namespace freehold::doctor
