// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/comparison.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/doctor/facts/resampled.hpp"

namespace freehold::doctor {
namespace {

using Value = double (*)(const Trial&);

double time_of(const Trial& trial) { return trial.cost(); }
double cpu_of(const Trial& trial) { return trial.cpu_s(); }
double memory_of(const Trial& trial) { return static_cast<double>(trial.peak_rss_bytes); }
double faults_of(const Trial& trial) { return static_cast<double>(trial.page_faults); }
double waits_of(const Trial& trial) { return static_cast<double>(trial.voluntary_switches); }

// Others delay a program, but they add nothing to its CPU time, memory or counts.
bool is_time(Figure figure) noexcept { return figure == Figure::kTime || figure == Figure::kTimeAlone; }

// The value in place of the time, which is what is resampled.
void put_in_place(Value value_of, bool is_time, std::vector<Trial>& trials) {
  for (Trial& trial : trials) {
    const double value = value_of(trial);  // the time for a unit, if there is a throughput
    trial.throughput.reset();
    const double scale = is_time && trial.wall_s > 0 ? value / trial.wall_s : 0;
    for (double* const seconds : {&trial.taken_s, &trial.user_s, &trial.system_s}) *seconds *= scale;
    trial.wall_s = value;
  }
}

// Both sides as an experiment, so that limits are drawn as the verdict's are, and disturbed trials left out as there.
std::optional<Change> changed(Figure figure, const Setting& setting, const std::vector<Trial>& before,
                              const std::vector<Trial>& after, Value value_of) {
  if (before.empty() || after.empty()) return std::nullopt;
  Experiment both;
  both.variants.resize(2);
  both.cells.push_back({.variant = 0, .setting = setting, .trials = before, .failure = {}});
  both.cells.push_back({.variant = 1, .setting = setting, .trials = after, .failure = {}});
  both = without_disturbed(std::move(both));
  for (Cell& cell : both.cells) put_in_place(value_of, is_time(figure), cell.trials);
  for (const Cell& cell : both.cells) {
    if (std::ranges::any_of(cell.trials, [](const Trial& trial) { return !(trial.wall_s > 0); })) return std::nullopt;
  }
  const Resampled resampled(both);
  const auto& cells = both.cells;
  Change change{.figure = figure,
                .before = resampled.estimate([&](const auto& costs) { return costs(cells[0]); }),
                .after = resampled.estimate([&](const auto& costs) { return costs(cells[1]); }),
                .ratio = resampled.estimate([&](const auto& costs) { return costs(cells[1]) / costs(cells[0]); })};
  change.is_beyond_chance = change.ratio->low > 1 || change.ratio->high < 1;
  return change;
}

std::optional<Change> changed_share(Figure figure, const std::optional<Estimate>& before,
                                    const std::optional<Estimate>& after) {
  if (!before || !after) return std::nullopt;
  return Change{.figure = figure,
                .before = *before,
                .after = *after,
                .ratio = {},
                .is_beyond_chance = before->high < after->low || after->high < before->low};
}

// The probe counts every allocation, so that what differs is the program's doing, though one run may differ from another.
std::optional<Change> changed_allocations(const Side& before, const Side& after) {
  if (!before.allocations || !after.allocations || *before.allocations <= 0) return std::nullopt;
  const double one = *before.allocations, other = *after.allocations, ratio = other / one;
  return Change{.figure = Figure::kAllocations,
                .before = {one, one, one},
                .after = {other, other, other},
                .ratio = Estimate{ratio, ratio, ratio}};
}

Mismatch mismatch_of(const Side& before, const Side& after) noexcept {
  if (before.on_all != after.on_all) return Mismatch::kOtherSettings;
  if (before.all.empty()) return Mismatch::kNothingBefore;
  return after.all.empty() ? Mismatch::kNothingAfter : Mismatch::kNone;
}

}  // namespace

std::string_view name_of(Figure figure) noexcept {
  static constexpr std::array<std::string_view, 9> kNames{"time",  "time_alone",  "cpu",       "memory", "faults",
                                                          "waits", "allocations", "in_malloc", "lost"};
  return kNames[static_cast<std::size_t>(figure)];
}

const Change* Comparison::find(Figure figure) const noexcept {
  const auto found = std::ranges::find(changes, figure, &Change::figure);
  return found == changes.end() ? nullptr : &*found;
}

Tempo tempo_of(const Comparison& comparison) noexcept {
  const Change& time = comparison.changes.front();
  if (!time.is_beyond_chance) return Tempo::kNoClearChange;
  return time.ratio->value < 1 ? Tempo::kFaster : Tempo::kSlower;
}

Comparison compare(const Side& before, const Side& after) {
  Comparison comparison{.mismatch = mismatch_of(before, after), .changes = {}};
  if (comparison.mismatch != Mismatch::kNone) return comparison;
  const auto add = [&comparison](std::optional<Change> change) {
    if (change) comparison.changes.push_back(*std::move(change));
  };
  add(changed(Figure::kTime, before.on_all, before.all, after.all, time_of));
  if (comparison.changes.empty()) return {.mismatch = Mismatch::kNoTime, .changes = {}};
  if (before.on_one == after.on_one && before.on_one != before.on_all)
    add(changed(Figure::kTimeAlone, before.on_one, before.alone, after.alone, time_of));
  add(changed(Figure::kCpu, before.on_all, before.all, after.all, cpu_of));
  add(changed(Figure::kMemory, before.on_all, before.all, after.all, memory_of));
  add(changed(Figure::kFaults, before.on_all, before.all, after.all, faults_of));
  add(changed(Figure::kWaits, before.on_all, before.all, after.all, waits_of));
  add(changed_allocations(before, after));
  add(changed_share(Figure::kInMalloc, before.in_malloc, after.in_malloc));
  add(changed_share(Figure::kLost, before.lost, after.lost));
  return comparison;
}

}  // namespace freehold::doctor
