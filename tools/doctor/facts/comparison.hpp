// SPDX-License-Identifier: MIT
// Two versions of a program, or one before and after a change: what changed, within which limits, and whether that can be
// chance. The limits are drawn as the verdict's are (resampled.hpp). Pure: the trials come from run/paired_trials.hpp or
// from reports.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"

namespace freehold::doctor {

// One of the two: the trials of the program as it is.
struct Side {
  Setting on_all, on_one;             // settings that were tried; equal: there is only one
  std::vector<Trial> all, alone;      // trials in these settings
  std::optional<Estimate> lost;       // share of the time in `on_all`
  std::optional<Estimate> in_malloc;  // share of the CPU time in malloc and free, as it was recorded
  std::optional<double> allocations;  // allocations in one run
};

enum class Figure : std::uint8_t { kTime, kTimeAlone, kCpu, kMemory, kFaults, kWaits, kAllocations, kInMalloc, kLost };
[[nodiscard]] std::string_view name_of(Figure figure) noexcept;  // "time_alone", as in JSON

struct Change {
  Figure figure = Figure::kTime;
  Estimate before, after;
  std::optional<Estimate> ratio;  // after divided by before; none for shares
  bool is_beyond_chance = false;  // the limits of the ratio exclude 1, or those of the shares do not overlap
};

// The reason why two sides cannot be compared.
enum class Mismatch : std::uint8_t { kNone, kOtherSettings, kNothingBefore, kNothingAfter, kNoTime };

struct Comparison {
  Mismatch mismatch = Mismatch::kNone;  // if there is one, there are no changes
  std::vector<Change> changes;          // changes of the figures that both sides have; the time first

  [[nodiscard]] const Change* find(Figure figure) const noexcept;
};

// The direction in which the time changed.
enum class Tempo : std::uint8_t { kNoClearChange, kFaster, kSlower };
// Pre: without a mismatch.
[[nodiscard]] Tempo tempo_of(const Comparison& comparison) noexcept;

[[nodiscard]] Comparison compare(const Side& before, const Side& after);

}  // namespace freehold::doctor
