// SPDX-License-Identifier: MIT
// The measurements of `freehold timers`, and the figures computed from them: medians, ratios within the sets, targets.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/series.hpp"
#include "lab/timers/plan.hpp"

namespace freehold::cli::timers {

struct Sample {
  std::array<Cost, kPhases> costs{};
  std::uint64_t background_operations = 0;
  std::uint64_t peak_rss_bytes = 0;
};

using Series = CellSeries<Cell, Sample>;

struct Results : ExperimentResults<Settings, Cell, Sample> {
  using ExperimentResults::find;
  [[nodiscard]] const Series* find(const Row& row, Load load, std::size_t structure) const;
  [[nodiscard]] const Series* find(const Row& row, Load load, std::string_view structure) const;
};

// A part of a Cost: nanoseconds per operation, or events per thousand operations.
enum class Figure : std::uint8_t { kCpu, kWall, kSleeps, kWaits };

[[nodiscard]] double figure_of(const Sample& sample, Trial test, Phase phase, Figure figure);
// Of every measured set; their median.
[[nodiscard]] std::vector<double> figures_of(const Series& series, Phase phase, Figure figure);
[[nodiscard]] std::optional<double> median_of(const Series* series, Phase phase, Figure figure);

// One figure divided by another: in each set, then the median of the sets.
struct Ratio {
  double median = 0;
  double least = 0;
  double greatest = 0;
};
[[nodiscard]] std::optional<Ratio> ratio_of(const Series* series, const Series* other, Phase phase, Figure figure);

// A ratio that the structures should reach, if it was measured.
struct Target {
  std::string text;
  Ratio ratio;
  double wanted = 0;
  bool at_least = true;  // else at most

  [[nodiscard]] bool is_reached() const { return at_least ? ratio.median >= wanted : ratio.median <= wanted; }
};
[[nodiscard]] std::vector<Target> targets_of(const Results& results);
// Sentences about spread, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);
// The failed measurements, a sentence each.
[[nodiscard]] std::vector<std::string> failures_of(const Results& results);

}  // namespace freehold::cli::timers
