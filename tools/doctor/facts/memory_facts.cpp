// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/memory_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr double kLeastShare = 0.1;  // share of the whole, for a fix to be worth it
constexpr double kMebibyte = 1 << 20, kLeastSaved = kMebibyte;
constexpr double kTolerance = 0.2;          // share of the whole, by which two measures may differ
constexpr double kTolerated = 4 << 20;      // or so many bytes
constexpr std::size_t kTrialsThatTell = 3;  // of each, whose range is limit enough
constexpr std::array kDividing{MemoryTreatment::kOneArena, MemoryTreatment::kNoCaches, MemoryTreatment::kTrimmed};

constexpr std::array<FactDescription, kMemoryFacts> kDescriptions{{
    {"dropped", "records", "those of the recording that found no room"},
    {"trials", "trials", "runs of the program as it is"},
    {"recorded-differs", "tolerances",
     "by which the recorded run held another amount than the others, in the mean and at the peak"},
    {"live-exceeds", "tolerances", "by which more data was recorded as live than memory was there"},
    {"more-saved", "tolerances", "by which a treatment saves more than malloc is said to hold free"},
    {"held", "MiB", "the mean of the recorded run, or of the others if none was", ToldBy::kCounts, {}, false},
    {"others-held", "MiB", "the mean of the other runs", ToldBy::kCounts, {}, false},
    {"live", "of the memory", "live data; like each part 0 where another is greater", ToldBy::kCounts, {}, false},
    {"rounding", "of the memory", "headers of live blocks, and steps between sizes", ToldBy::kCounts, {}, false},
    {"arenas", "of the memory", "what is free in several arenas, and would not be in one", ToldBy::kCounts, {}, false},
    {"caches", "of the memory", "free blocks in caches of threads", ToldBy::kCounts, {}, false},
    {"free-pages", "of the memory", "whole free pages in malloc, which a trim gives back", ToldBy::kCounts, {}, false},
    {"holes", "of the memory", "free memory between live blocks", ToldBy::kCounts, {}, false},
    {"mappings", "of the memory", "mappings of the program's own", ToldBy::kCounts, {}, false},
    {"stacks", "of the memory", "stacks of threads", ToldBy::kCounts, {}, false},
    {"files", "of the memory", "code, variables, mapped files", ToldBy::kCounts, {}, false},
    {"shared-memory", "of the memory", "files in tmpfs, shared mappings", ToldBy::kCounts, {}, false},
    {"page-tables", "of the memory", "the kernel's page tables", ToldBy::kCounts, {}, false},
    {"greatest-part", "of the memory", "the greatest of these parts", ToldBy::kCounts, {}, false},
    {"lead", "times", "that part, of the next one"},
    {"largest-block", "of the live data", "the largest block"},
    {"leak", "of the live data", "blocks of sites that never free, and grow all along"},
    {"divided", "of glibc's treatments", "those that say where memory is free, and ran"},
    {"may-save", "of the holes", "what one of these may save without being sure to"},
}};

std::vector<double> all_of(const MemoryCell& cell, double MemoryTrial::* figure) {
  std::vector<double> values;
  for (const MemoryTrial& trial : cell.trials) values.push_back(trial.*figure);
  return values;
}

// How far single runs lie from the mean of their cell.
struct Spread {
  double variance = 0, freedom = 0;  // bytes squared; degrees of freedom
};
Spread spread_of(std::span<const double> values) {
  const double count = static_cast<double>(values.size());
  if (values.size() < 2) return {};
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {squares / (count - 1), count - 1};
}
// Returns the spread of all cells together: two runs of one alone may lie close by chance.
Spread common_spread_of(const std::vector<MemoryCell>& cells, double MemoryTrial::* figure) {
  Spread all;
  for (const MemoryCell& cell : cells) {
    const Spread own = spread_of(all_of(cell, figure));
    all.variance += own.variance * own.freedom;
    all.freedom += own.freedom;
  }
  if (all.freedom > 0) all.variance /= all.freedom;
  return all;
}

// Student's t: 95 of 100 lie within so many standard errors to either side. Beyond the table a little too many.
double student_t(double freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  constexpr double kRounding = 1e-6;  // a whole number may come out a little below itself
  const auto row = static_cast<std::size_t>(std::clamp(freedom + kRounding, 1.0, static_cast<double>(kTable.size())));
  return kTable[row - 1];
}

// To either side of a mean, or of the difference of two (Welch), where runs spread as their own cell or all cells say,
// whichever is more.
double chance_of(std::initializer_list<std::span<const double>> samples, const Spread& common) {
  double squared_error = 0, by_freedom = 0;
  for (const std::span<const double> values : samples) {
    const Spread own = spread_of(values);
    const Spread& spread = own.variance > common.variance ? own : common;
    if (spread.freedom == 0) return std::numeric_limits<double>::infinity();  // nothing was run twice
    const double part = spread.variance / static_cast<double>(values.size());
    squared_error += part;
    by_freedom += part * part / spread.freedom;
  }
  return squared_error <= 0 ? 0 : student_t(squared_error * squared_error / by_freedom) * std::sqrt(squared_error);
}

// Estimates a run, in the mean of all runs that could have been seen; with limits that hold those seen, too.
Estimate of_runs(const std::vector<MemoryCell>& cells, double MemoryTrial::* figure) {
  const auto values = all_of(cells.front(), figure);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const double chance = std::min(chance_of({values}, common_spread_of(cells, figure)), mean);  // bytes are never below 0
  return {.low = std::min(std::ranges::min(values), mean - chance),
          .value = mean,
          .high = std::max(std::ranges::max(values), mean + chance)};
}

// By how much less is held than by the program as it is. The limits are those of the trials that lie farthest apart: of
// three and three that are alike, those of the one lie all below the others' once in 20 times. Of two and two they do once
// in 6, so that there the limits are at least those of chance.
MemoryFix fix_of(const MemoryCell& as_it_is, const MemoryCell& cell, std::size_t index, double whole, const Spread& common) {
  MemoryFix fix{.cell = index, .saved = {}, .peak_saved = 0, .helps = false, .failed = !cell.failure.empty()};
  if (cell.trials.empty()) return fix;
  const auto before = all_of(as_it_is, &MemoryTrial::mean_bytes), after = all_of(cell, &MemoryTrial::mean_bytes);
  fix.saved = {.low = std::ranges::min(before) - std::ranges::max(after),
               .value = median(before) - median(after),
               .high = std::ranges::max(before) - std::ranges::min(after)};
  if (std::min(before.size(), after.size()) < kTrialsThatTell) {
    // Never beyond all that there is.
    const double chance = std::min(chance_of({before, after}, common), std::ranges::max(before) + std::ranges::max(after));
    fix.saved.low = std::min(fix.saved.low, fix.saved.value - chance);
    fix.saved.high = std::max(fix.saved.high, fix.saved.value + chance);
  }
  fix.peak_saved = median(all_of(as_it_is, &MemoryTrial::peak_bytes)) - median(all_of(cell, &MemoryTrial::peak_bytes));
  fix.helps = !fix.failed && fix.saved.low > 0 && fix.saved.value >= std::max(kLeastShare * whole, kLeastSaved);
  return fix;
}

// Surely saved: beyond chance.
double saved_by(const MemoryExperiment& experiment, const std::vector<MemoryFix>& fixes, MemoryTreatment treatment) {
  for (const MemoryFix& fix : fixes)
    if (experiment.cells[fix.cell].variant.treatment == treatment && !fix.failed && fix.saved.low > 0)
      return fix.saved.value;
  return 0;
}

bool was_tried(const MemoryExperiment& experiment, MemoryTreatment treatment) {
  return std::ranges::any_of(experiment.cells, [treatment](const MemoryCell& cell) {
    return cell.variant.treatment == treatment && cell.failure.empty() && !cell.trials.empty();
  });
}
// Other mallocs have no such treatments: all that they hold free counts as holes.
bool is_divided(const MemoryExperiment& experiment) {
  return !experiment.is_glibc ||
         std::ranges::all_of(kDividing, [&](MemoryTreatment treatment) { return was_tried(experiment, treatment); });
}

// The free bytes of `parts` in the proportion of those that were divided.
MemoryParts divided_like(MemoryParts parts, const MemoryParts& pattern) {
  double all = 0;
  for (const MemoryPart part : {MemoryPart::kArenas, MemoryPart::kCaches, MemoryPart::kFreePages, MemoryPart::kHoles})
    all += pattern[part];
  const double free_bytes = parts.free_bytes;
  if (all <= 0) return divided(parts, {});
  return divided(parts, {.by_one_arena = free_bytes * pattern[MemoryPart::kArenas] / all,
                         .without_caches = free_bytes * pattern[MemoryPart::kCaches] / all,
                         .by_trimming = free_bytes * pattern[MemoryPart::kFreePages] / all});
}

double leak_share_of(const MemoryRecord& record) {
  if (record.mean_live <= 0) return 0;
  double sum = 0;
  for (const LiveSite& site : record.sites) sum += site.growing;
  return std::min(1.0, sum / record.mean_live);
}

double tolerance_of(double whole) { return std::max(kTolerance * whole, kTolerated); }

// Returns what malloc held free in the other runs, if the recorded run differs by that. What is live depends on the program
// alone. More than in the recorded run counts only where a treatment saves half of it: else it may have been live.
double settled_free_bytes(const MemoryExperiment& experiment, const std::vector<MemoryFix>& fixes) {
  const MemoryRecord& record = *experiment.record;
  const double more = median(all_of(experiment.cells.front(), &MemoryTrial::heap_bytes)) - record.heap_bytes;
  const bool is_saved = std::ranges::any_of(
      fixes, [more](const MemoryFix& fix) { return !fix.failed && fix.saved.low > 0 && fix.saved.value >= more / 2; });
  return more > 0 && !is_saved ? record.mean.free_bytes : std::max(0.0, record.mean.free_bytes + more);
}

class Division {
 public:
  explicit Division(const MemoryExperiment& experiment)
      : experiment_(experiment),
        as_it_is_(experiment.cells.front()),
        files_(median(all_of(as_it_is_, &MemoryTrial::files_bytes))),
        seen_(median(all_of(as_it_is_, &MemoryTrial::mean_bytes)) + files_) {}

  MemoryFigures figures() {
    figures_.mean_bytes = experiment_.record ? experiment_.record->mean.sum() + files_ : seen_;
    figures_.run_mean = of_runs(experiment_.cells, &MemoryTrial::mean_bytes);
    figures_.run_peak = of_runs(experiment_.cells, &MemoryTrial::peak_bytes);
    judge_fixes();
    if (experiment_.record) {
      divide(*experiment_.record);
      note_agreement(*experiment_.record);
      note_parts(*experiment_.record);
    }
    set(MemoryFact::kTrials, static_cast<double>(as_it_is_.trials.size()));
    set(MemoryFact::kHeld, figures_.mean_bytes / kMebibyte);
    set(MemoryFact::kOthersHeld, seen_ / kMebibyte);
    return std::move(figures_);
  }

 private:
  void set(MemoryFact fact, double value) { figures_.facts.set(fact, value); }

  void judge_fixes() {
    const Spread common = common_spread_of(experiment_.cells, &MemoryTrial::mean_bytes);
    std::vector<MemoryFix>& fixes = figures_.fixes;
    std::optional<std::size_t>& best = figures_.best_fix;
    for (std::size_t i = 1; i < experiment_.cells.size(); ++i)
      fixes.push_back(fix_of(as_it_is_, experiment_.cells[i], i, figures_.mean_bytes, common));
    for (std::size_t i = 0; i < fixes.size(); ++i)
      if (fixes[i].helps && (!best || fixes[i].saved.value > fixes[*best].saved.value)) best = i;
  }

  void divide(const MemoryRecord& record) {
    MemoryParts mean = record.mean;
    if (std::abs(seen_ - figures_.mean_bytes) > tolerance_of(figures_.mean_bytes))
      mean.free_bytes = settled_free_bytes(experiment_, figures_.fixes);
    figures_.mean_bytes = mean.sum() + files_;
    figures_.parts = divided(mean, {.by_one_arena = saved_by(experiment_, figures_.fixes, MemoryTreatment::kOneArena),
                                    .without_caches = saved_by(experiment_, figures_.fixes, MemoryTreatment::kNoCaches),
                                    .by_trimming = saved_by(experiment_, figures_.fixes, MemoryTreatment::kTrimmed)});
    figures_.is_divided = is_divided(experiment_);
    figures_.parts[MemoryPart::kShared] += files_;
    figures_.at_peak = divided_like(record.at_peak, figures_.parts);
    figures_.at_peak[MemoryPart::kShared] += record.files_at_peak;
    figures_.leak_share = leak_share_of(record);
  }

  void note_agreement(const MemoryRecord& record) {
    const double whole = figures_.mean_bytes, tolerance = tolerance_of(whole);
    const MemoryParts& parts = figures_.parts;
    set(MemoryFact::kDropped, static_cast<double>(record.dropped));
    // A run that is slower to reach its peak has another mean, and holds the same.
    const double peak = median(all_of(as_it_is_, &MemoryTrial::peak_bytes));
    set(MemoryFact::kRecordedDiffers, std::min(std::abs(seen_ - whole), std::abs(peak - record.at_peak.sum())) / tolerance);
    set(MemoryFact::kLiveExceeds, (record.mean_live - parts.untouched_bytes - parts[MemoryPart::kLive]) / tolerance);
    double most = 0, may_save = 0;
    for (const MemoryFix& fix : figures_.fixes) {
      if (fix.failed) continue;
      const bool divides = std::ranges::find(kDividing, experiment_.cells[fix.cell].variant.treatment) != kDividing.end();
      if (fix.saved.low > 0)
        most = std::max(most, fix.saved.value - parts.overhead());
      else if (divides)
        may_save = std::max(may_save, fix.saved.value);
    }
    set(MemoryFact::kMoreSaved, most / tolerance);
    set(MemoryFact::kMaySave, may_save / std::max(1.0, parts[MemoryPart::kHoles]));
    set(MemoryFact::kDivided, figures_.is_divided ? 1.0 : 0.0);
  }

  void note_parts(const MemoryRecord& record) {
    const auto& bytes = figures_.parts.bytes;
    const std::size_t greatest = static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin());
    double next = 0;
    for (std::size_t i = 0; i < kMemoryParts; ++i) {
      const bool is_greatest = i == greatest;
      const double share = is_greatest ? bytes[i] / std::max(1.0, figures_.parts.sum()) : 0;
      set(static_cast<MemoryFact>(static_cast<std::size_t>(MemoryFact::kLive) + i), share);
      if (is_greatest)
        set(MemoryFact::kGreatest, share);
      else
        next = std::max(next, bytes[i]);
    }
    set(MemoryFact::kLead, bytes[greatest] / std::max(1.0, next));
    set(MemoryFact::kLargestBlock, record.mean_live > 0 ? record.mean_largest_block / record.mean_live : 0);
    set(MemoryFact::kLeak, figures_.leak_share);
  }

  const MemoryExperiment& experiment_;
  const MemoryCell& as_it_is_;
  const double files_, seen_;  // in tmpfs; what the runs that were not recorded held
  MemoryFigures figures_;
};

}  // namespace

const FactDescription& describe(MemoryFact fact) noexcept { return kDescriptions[static_cast<std::size_t>(fact)]; }

MemoryFigures figures_of(const MemoryExperiment& experiment) { return Division(experiment).figures(); }

}  // namespace freehold::doctor
