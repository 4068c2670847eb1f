// SPDX-License-Identifier: MIT
// Limits of figures, by the bootstrap: every cell's trials are drawn again with replacement, many times, and a figure is
// computed again from each draw. Few trials tell little about their own spread, so each draw is also varied by as much as
// trials of this experiment usually differ.
//
// The time that other processes took from a trial's CPUs is taken off its cost. It is not known by how much they delayed a
// program with several CPUs: not at all, or by all of that time. Each draw assumes something between the two; the value
// itself assumes that the delay was divided among the CPUs.
//
// Repeatable: the draws depend on nothing but the experiment. One thread. Cost: O(cells x trials) for a thousand draws.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "freehold/doctor/analysis/experiment.hpp"
#include "freehold/doctor/analysis/verdict.hpp"

namespace freehold::doctor {

// What others took of the CPUs that the trial could use, 0 to 1.
[[nodiscard]] double taken_share(const Trial& trial, const Setting& setting) noexcept;
// A trial from whose CPUs others took more than this says more about these others.
inline constexpr double kDisturbed = 0.05;
// What the trial would have cost if others had taken nothing: they delayed it by this share of what they took, 0 to 1. One
// that had a single CPU was delayed by all of it; one that had more, by its share of the CPUs if it used them all at that
// time, by all if one thread was held up for which the others waited, and not at all if another CPU was free.
[[nodiscard]] double cost_without_others(const Trial& trial, double delayed) noexcept;
// Without the trials that others disturbed, where there are enough others: in each cell, and with each delay.
[[nodiscard]] Experiment without_disturbed(Experiment experiment);

class Resampled {
 public:
  static constexpr std::size_t kDraws = 1000;

  explicit Resampled(const Experiment& experiment);

  // The costs of one draw, or (at first) as they were measured.
  class Costs {
   public:
    // Pre: the cell is one of the experiment's and has trials.
    [[nodiscard]] double operator()(const Cell& cell) const { return of_.medians_[of_.index_of(cell)][draw_]; }
    // CPU seconds of the same.
    [[nodiscard]] double cpu_seconds(const Cell& cell) const { return of_.cpu_medians_[of_.index_of(cell)][draw_]; }

   private:
    friend Resampled;
    Costs(const Resampled& of, std::size_t draw) : of_(of), draw_(draw) {}
    const Resampled& of_;
    std::size_t draw_;
  };

  // The costs as they were measured.
  [[nodiscard]] Costs measured() const { return Costs(*this, 0); }
  // What `figure(costs)` is, and the limits that nine of ten draws keep. Pre: figure is finite for every draw.
  template <class Figure>
  [[nodiscard]] Estimate estimate(const Figure& figure) const {
    std::vector<double> drawn;
    drawn.reserve(kDraws);
    for (std::size_t draw = 1; draw <= kDraws; ++draw) drawn.push_back(figure(Costs(*this, draw)));
    std::ranges::sort(drawn);
    const double value = figure(Costs(*this, 0));
    return {std::min(drawn[kDraws / 20], value), value, std::max(drawn[kDraws - kDraws / 20 - 1], value)};
  }

  // The share of draws in which `holds(costs)`.
  template <class Condition>
  [[nodiscard]] double confidence(const Condition& holds) const {
    std::size_t held = 0;
    for (std::size_t draw = 1; draw <= kDraws; ++draw) held += holds(Costs(*this, draw)) ? 1 : 0;
    return static_cast<double>(held) / kDraws;
  }

  // What trials of one cell usually differ by, relative to their median.
  [[nodiscard]] double usual_spread() const noexcept { return usual_spread_; }

 private:
  [[nodiscard]] std::size_t index_of(const Cell& cell) const {
    return static_cast<std::size_t>(&cell - experiment_.cells.data());
  }

  const Experiment& experiment_;
  double usual_spread_ = 0;
  std::vector<std::vector<double>> medians_;      // of each cell: as measured, then of each draw
  std::vector<std::vector<double>> cpu_medians_;  // the same of CPU seconds
};

}  // namespace freehold::doctor
