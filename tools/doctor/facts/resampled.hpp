// SPDX-License-Identifier: MIT
// Limits of figures, by the bootstrap: every cell's trials are drawn again with replacement, many times, and a figure is
// computed again from each draw. Few trials tell little about their own spread, so each draw is also varied by as much as
// trials of this experiment usually differ. A draw takes whole rounds: of what a round does to all of its trials nothing is
// left in figures that compare cells.
//
// CPU time that other processes took is taken off a trial's cost. It is counted how much CPU time the program had and
// how long its threads were ready to run without a CPU. So the time is known for a program of which all threads are always
// ready, and for one of which one is. Between the two it is not known whether it was one thread that waited or all: each
// draw assumes something that agrees with the counts, and the value itself that all waited alike.
//
// Repeatable: the draws depend on nothing but the experiment. One thread. Cost: O(cells x trials) for a thousand draws.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// Returns the share that others took of the CPUs that the trial could use, 0 to 1.
[[nodiscard]] double taken_share(const Trial& trial, const Setting& setting) noexcept;
// A trial from whose CPUs others took more than this says more about these others.
inline constexpr double kDisturbed = 0.05;
// Returns what the trial would have cost on `width` CPUs if others had taken nothing. `how`: 0: it was most delayed while
// one thread was ready, and idle as long as it can have been; 1: while all were; none: alike.
[[nodiscard]] double cost_without_others(const Trial& trial, unsigned width, std::optional<double> how) noexcept;
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
    // Returns the CPU seconds of the same trials: what slows a trial down makes it need more of them, too, and idle as much.
    [[nodiscard]] double cpu_seconds(const Cell& cell) const { return of_.cpu_medians_[of_.index_of(cell)][draw_]; }

   private:
    friend Resampled;
    Costs(const Resampled& of, std::size_t draw) : of_(of), draw_(draw) {}
    const Resampled& of_;
    std::size_t draw_;
  };

  // The costs as they were measured.
  [[nodiscard]] Costs measured() const { return Costs(*this, 0); }
  // Returns `figure(costs)`, and the limits that nine of ten draws keep. Pre: figure is finite for every draw.
  template <class Figure>
  [[nodiscard]] Estimate estimate(const Figure& figure) const {
    std::vector<double> drawn;
    drawn.reserve(kDraws);
    for (std::size_t draw = 1; draw <= kDraws; ++draw) drawn.push_back(figure(Costs(*this, draw)));
    std::ranges::sort(drawn);
    const double value = figure(Costs(*this, 0));
    return {std::min(drawn[kDraws / 20], value), value, std::max(drawn[kDraws - kDraws / 20 - 1], value)};
  }

  // Returns the share of draws in which `holds(costs)`.
  template <class Condition>
  [[nodiscard]] double confidence(const Condition& holds) const {
    std::size_t held = 0;
    for (std::size_t draw = 1; draw <= kDraws; ++draw) held += holds(Costs(*this, draw)) ? 1 : 0;
    return static_cast<double>(held) / kDraws;
  }

  // Returns what trials of one cell usually differ by, relative to their median.
  [[nodiscard]] double usual_spread() const noexcept { return usual_spread_; }

 private:
  [[nodiscard]] std::size_t index_of(const Cell& cell) const {
    return static_cast<std::size_t>(&cell - experiment_.cells.data());
  }

  const Experiment& experiment_;
  double usual_spread_ = 0;
  std::vector<std::vector<double>> medians_;      // for each cell the median as measured, then that of each draw
  std::vector<std::vector<double>> cpu_medians_;  // the same of CPU seconds
};

}  // namespace freehold::doctor
