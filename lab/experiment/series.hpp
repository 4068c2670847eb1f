// SPDX-License-Identifier: MIT
// The results of an experiment: one series of samples for each cell of its tables, and how the run went.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/support/machine.hpp"
#include "cli/support/statistics.hpp"

namespace freehold::cli {

// The measurements of one cell.
template <class Cell, class Sample>
struct CellSeries {
  Cell cell;
  std::vector<std::optional<Sample>> samples;  // one place for each set that was begun
  std::string failure;                         // why a sample is missing, if not for lack of time
};

// Where and when an experiment ran.
struct RunRecord {
  Machine machine;
  std::string date;      // of the beginning; UTC, ISO 8601
  bool complete = true;  // false: interrupted
  double seconds = 0;    // from beginning to end
  double others = 0;     // the share of the CPUs that other programs had meanwhile
};

// `Cell` must be equality comparable.
template <class Settings, class Cell, class Sample>
struct ExperimentResults : RunRecord {
  Settings settings;
  std::vector<CellSeries<Cell, Sample>> series;  // in the order of cells_of(settings)

  // Null: there is no such cell.
  [[nodiscard]] const CellSeries<Cell, Sample>* find(const Cell& cell) const {
    const auto found = std::ranges::find(series, cell, &CellSeries<Cell, Sample>::cell);
    return found == series.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_failures() const {
    return std::ranges::any_of(series, [](const auto& one) { return !one.failure.empty(); });
  }
};

// A series without samples for each cell.
template <class Cell, class Sample>
void begin_series(std::vector<CellSeries<Cell, Sample>>& series, const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) series.push_back({.cell = cell, .samples = {}, .failure = {}});
}

// figure(sample) for every set that was measured.
template <class Cell, class Sample>
[[nodiscard]] std::vector<double> figures_of(const CellSeries<Cell, Sample>& series, auto figure) {
  std::vector<double> figures;
  for (const auto& sample : series.samples) {
    if (sample) figures.push_back(figure(*sample));
  }
  return figures;
}

// ratio(sample, sample of `other`) for every set in which both were measured.
template <class Cell, class Sample>
[[nodiscard]] std::vector<double> ratios_of(const CellSeries<Cell, Sample>& series, const CellSeries<Cell, Sample>& other,
                                            auto ratio) {
  std::vector<double> ratios;
  for (std::size_t set = 0; set < std::min(series.samples.size(), other.samples.size()); ++set) {
    if (series.samples[set] && other.samples[set]) ratios.push_back(ratio(*series.samples[set], *other.samples[set]));
  }
  return ratios;
}

// Notes below the figures that every experiment may need: it was interrupted, a measurement failed, sets differ widely.
inline constexpr std::string_view kInterruptedNote = "Interrupted: only the measurements finished until then are shown.";

// "boost-pool failed in short, fresh: killed by signal 11."
[[nodiscard]] std::string failure_note(std::string_view name, std::string_view row, std::string_view why);

// Counts the medians whose sets differ by more than `limit` of the median.
class SpreadNote {
 public:
  explicit SpreadNote(double limit) : limit_(limit) {}
  // The figure of each set; none: there is no median.
  void add(std::span<const double> figures);
  [[nodiscard]] std::size_t medians() const noexcept { return medians_; }
  // Adds a sentence if there is such a median.
  void write_to(std::vector<std::string>& notes) const;

 private:
  double limit_;
  double widest_ = 0;
  std::size_t medians_ = 0;
  std::size_t wide_ = 0;
};

}  // namespace freehold::cli
