// SPDX-License-Identifier: MIT
// The measurements of `freehold scale`, and the figures computed from them: medians, spreads, speed relative to one worker.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/series.hpp"
#include "lab/scale/plan.hpp"

namespace freehold::cli::scale {

struct Sample {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t peak_rss_bytes = 0;
};

using Series = CellSeries<Cell, Sample>;

struct Results : ExperimentResults<Settings, Cell, Sample> {
  std::array<std::uint64_t, kWorkloads.size()> units{};  // of work in an iteration, by workload; 0: not calibrated
  std::vector<std::string> notes;

  [[nodiscard]] std::uint64_t& units_of(Workload test) { return units[static_cast<std::size_t>(test)]; }
  [[nodiscard]] std::uint64_t units_of(Workload test) const { return units[static_cast<std::size_t>(test)]; }
};

[[nodiscard]] Job job_of(const Results& results, const Series& series);
// In seconds, of the measured sets.
[[nodiscard]] std::vector<double> times_of(const Series& series);
[[nodiscard]] std::optional<double> median_time(const Series* series);
[[nodiscard]] std::optional<double> nanoseconds_per_operation(const Results& results, const Series* series);
[[nodiscard]] std::optional<std::uint64_t> peak_rss(const Series* series);
// The fewest workers of the same test, mode and subject: one, or one pair.
[[nodiscard]] const Series* base_of(const Results& results, const Cell& cell);
// How many times as fast as the base: from the medians; and in one set.
[[nodiscard]] std::optional<double> speed(const Results& results, const Cell& cell);
[[nodiscard]] std::optional<double> speed_in_set(const Results& results, const Cell& cell, std::size_t set);
// The best speed that `cpus` CPUs allow for these shares of the iterations.
[[nodiscard]] double ideal_speed(std::uint32_t iterations, std::uint32_t workers, unsigned cpus);

}  // namespace freehold::cli::scale
