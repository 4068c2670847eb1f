// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/memory_verdict.hpp"

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

constexpr double kMain = 0.5;        // share of the whole: a part that is the cause whatever the others are
constexpr double kGreatest = 0.35;   // or this much, if the next one is well behind
constexpr double kAhead = 1.5;       // times the next part
constexpr double kLeastShare = 0.1;  // share of the whole, for a fix to be worth it
constexpr double kLeastSaved = 1 << 20;
constexpr double kTolerance = 0.2;      // share of the whole, by which two measures may differ
constexpr double kTolerated = 4 << 20;  // or so many bytes
constexpr std::size_t kLeastTrials = 2;
constexpr std::size_t kTrialsThatTell = 3;  // of each, whose range is limit enough
constexpr double kMostOfLive = 0.5;         // share of live data: one block, or sites that leak
constexpr std::size_t kMostPoints = 200;

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
         std::ranges::all_of(std::array{MemoryTreatment::kOneArena, MemoryTreatment::kNoCaches, MemoryTreatment::kTrimmed},
                             [&](MemoryTreatment treatment) { return was_tried(experiment, treatment); });
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

MemoryCause cause_of(MemoryPart part) {
  switch (part) {
    case MemoryPart::kLive: return MemoryCause::kLiveData;
    case MemoryPart::kRounding: return MemoryCause::kRounding;
    case MemoryPart::kArenas: return MemoryCause::kArenas;
    case MemoryPart::kCaches: return MemoryCause::kCaches;
    case MemoryPart::kFreePages: return MemoryCause::kFreePages;
    case MemoryPart::kHoles: return MemoryCause::kHoles;
    case MemoryPart::kMappings: return MemoryCause::kMappings;
    case MemoryPart::kStacks: return MemoryCause::kStacks;
    case MemoryPart::kFiles: return MemoryCause::kFiles;
    case MemoryPart::kShared: return MemoryCause::kShared;
    case MemoryPart::kPageTables: return MemoryCause::kPageTables;
  }
  __builtin_unreachable();
}

MemoryCause greatest_of(const MemoryParts& parts) {
  std::array<std::size_t, kMemoryParts> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-parts.bytes[i], i); });
  const double whole = parts.sum(), first = parts.bytes[order[0]], second = parts.bytes[order[1]];
  const bool is_cause = first >= kMain * whole || (first >= kGreatest * whole && first >= kAhead * second);
  return is_cause ? cause_of(static_cast<MemoryPart>(order[0])) : MemoryCause::kMixed;
}

MemoryCause refined(MemoryCause cause, const MemoryRecord& record, double leak_share) {
  if (cause != MemoryCause::kLiveData || record.mean_live <= 0) return cause;
  if (record.mean_largest_block >= kMostOfLive * record.mean_live) return MemoryCause::kOneBlock;
  return leak_share >= kMostOfLive ? MemoryCause::kLeak : cause;
}

double leak_share_of(const MemoryRecord& record) {
  if (record.mean_live <= 0) return 0;
  double sum = 0;
  for (const LiveSite& site : record.sites) sum += site.growing;
  return std::min(1.0, sum / record.mean_live);
}

bool differ(double one, double other, double whole) {
  return std::abs(one - other) > std::max(kTolerance * whole, kTolerated);
}
// The recorded run held another amount than the others: a run that is slower to reach its peak has another mean, and holds
// the same.
bool recorded_differs(const MemoryExperiment& experiment, double whole, double seen) {
  const double peak = median(all_of(experiment.cells.front(), &MemoryTrial::peak_bytes));
  return differ(seen, whole, whole) && differ(peak, experiment.record->at_peak.sum(), whole);
}

// Returns what malloc held free in the other runs, if the recorded run differs by that. What is live depends on the program
// alone. More than in the recorded run counts only where a treatment saves half of it: else it may have been live.
double settled_free_bytes(const MemoryExperiment& experiment, const std::vector<MemoryFix>& fixes) {
  const MemoryRecord& record = *experiment.record;
  const double more = median(all_of(experiment.cells.front(), &MemoryTrial::heap_bytes)) - record.heap_bytes;
  const bool is_saved = std::ranges::any_of(
      fixes, [more](const MemoryFix& fix) { return !fix.failed && fix.saved.low > 0 && fix.saved.value >= more / 2; });
  return more > 0 && !is_saved ? record.mean.free_bytes : std::max(0.0, record.mean.free_bytes + more);
}

MemoryDoubt doubt_of(const MemoryExperiment& experiment, const MemoryVerdict& verdict, double seen) {
  const MemoryCell& as_it_is = experiment.cells.front();
  if (as_it_is.trials.size() < kLeastTrials) return MemoryDoubt::kTooFewTrials;
  if (experiment.record->dropped > 0) return MemoryDoubt::kRecordingIsCut;
  const double tolerance = std::max(kTolerance * verdict.mean_bytes, kTolerated);
  if (recorded_differs(experiment, verdict.mean_bytes, seen)) return MemoryDoubt::kRecordingDiffers;
  if (experiment.record->mean_live - verdict.parts.untouched_bytes - verdict.parts[MemoryPart::kLive] > tolerance)
    return MemoryDoubt::kLiveExceeds;
  for (const MemoryFix& fix : verdict.fixes)
    if (!fix.failed && fix.saved.low > 0 && fix.saved.value - verdict.parts.overhead() > tolerance)
      return MemoryDoubt::kMoreSaved;
  return MemoryDoubt::kNone;
}

// Holes are what no treatment of glibc's gives back: each was tried, and none may save half of them without being sure to.
MemoryDoubt doubt_of_holes(const MemoryExperiment& experiment, const MemoryVerdict& verdict) {
  if (!verdict.is_divided) return MemoryDoubt::kNotDivided;
  const bool may_save = std::ranges::any_of(verdict.fixes, [&](const MemoryFix& fix) {
    const MemoryTreatment treatment = experiment.cells[fix.cell].variant.treatment;
    const bool divides = treatment == MemoryTreatment::kOneArena || treatment == MemoryTreatment::kNoCaches ||
                         treatment == MemoryTreatment::kTrimmed;
    return divides && !fix.failed && fix.saved.low <= 0 && fix.saved.value >= verdict.parts[MemoryPart::kHoles] / 2;
  });
  return may_save ? MemoryDoubt::kMaySave : MemoryDoubt::kNone;
}

}  // namespace

std::string_view name_of(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::kLittle: return "little";
    case MemoryCause::kLiveData: return "live-data";
    case MemoryCause::kLeak: return "leak";
    case MemoryCause::kOneBlock: return "one-block";
    case MemoryCause::kRounding: return "rounding";
    case MemoryCause::kArenas: return "arenas";
    case MemoryCause::kCaches: return "caches";
    case MemoryCause::kFreePages: return "free-pages";
    case MemoryCause::kHoles: return "holes";
    case MemoryCause::kMappings: return "mappings";
    case MemoryCause::kStacks: return "stacks";
    case MemoryCause::kFiles: return "files";
    case MemoryCause::kShared: return "shared-memory";
    case MemoryCause::kPageTables: return "page-tables";
    case MemoryCause::kMixed: return "mixed";
    case MemoryCause::kUndecided: return "undecided";
  }
  __builtin_unreachable();
}

bool blames_allocator(MemoryCause cause) noexcept { return cause >= MemoryCause::kRounding && cause <= MemoryCause::kHoles; }

std::string_view name_of(MemoryDoubt doubt) noexcept {
  switch (doubt) {
    case MemoryDoubt::kNone: return "none";
    case MemoryDoubt::kNothingRecorded: return "nothing-recorded";
    case MemoryDoubt::kTooFewTrials: return "too-few-trials";
    case MemoryDoubt::kRecordingIsCut: return "recording-is-cut";
    case MemoryDoubt::kRecordingDiffers: return "recording-differs";
    case MemoryDoubt::kLiveExceeds: return "live-exceeds";
    case MemoryDoubt::kMoreSaved: return "more-saved";
    case MemoryDoubt::kNotDivided: return "not-divided";
    case MemoryDoubt::kMaySave: return "may-save";
  }
  __builtin_unreachable();
}

std::optional<MemoryTrial> trial_of(const std::vector<MemorySnapshot>& snapshots, bool is_glibc) {
  if (snapshots.empty()) return std::nullopt;
  const std::vector<double> weights = weights_of(snapshots);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (all <= 0) return std::nullopt;
  MemoryTrial trial;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const double bytes = snapshots[i].bytes(), share = weights[i] / all;
    trial.mean_bytes += share * bytes;
    trial.peak_bytes = std::max(trial.peak_bytes, bytes);
    trial.files_bytes += share * snapshots[i].files_bytes;
    trial.heap_bytes += share * parts_of(snapshots[i], {}, {}, is_glibc).free_bytes;  // nothing is known to be live
  }
  trial.end_bytes = snapshots.back().bytes();
  return trial;
}

MemoryRecord record_of(const std::vector<MemorySnapshot>& snapshots, const LiveHistory& live, bool is_glibc) {
  MemoryRecord record;
  const std::vector<double> weights = weights_of(snapshots);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double peak = -1, most = 0;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const MemoryParts parts = parts_of(snapshots[i], live.at[i], live.seen, is_glibc);
    const double share = all > 0 ? weights[i] / all : 1.0 / static_cast<double>(snapshots.size());
    record.mean.add(parts, share);
    record.heap_bytes += share * parts_of(snapshots[i], {}, {}, is_glibc).free_bytes;
    if (parts.sum() > peak) {
      record.at_peak = parts;
      record.files_at_peak = snapshots[i].files_bytes;
    }
    most = std::max(most, parts.sum() + parts.untouched_bytes);
    peak = std::max(peak, parts.sum());
    if (i % (snapshots.size() / kMostPoints + 1) != 0) continue;
    double bytes = 0;
    for (const LiveData& one : live.at[i]) {
      bytes += one.bytes - one.mapped_rounding;
      for (const LargeBlock& block : one.mapped) bytes += static_cast<double>(block.end - block.begin);
    }
    record.history.push_back({snapshots[i].at_s - snapshots.front().at_s, bytes, parts.sum()});
  }
  record.mean_live = live.mean_bytes;
  record.peak_live = live.peak_bytes;
  record.end_live = live.end_bytes;
  record.mean_largest_block = live.mean_largest_block;
  record.dropped = live.dropped;
  record.sites = live.sites;
  // Estimates from samples: together they are not more than there was.
  if (most > 0 && record.peak_live > most) {
    for (LiveSite& site : record.sites) site.at_peak *= most / record.peak_live;
    record.peak_live = most;
  }
  return record;
}

MemoryVerdict verdict_of(const MemoryExperiment& experiment) {
  MemoryVerdict verdict;
  const MemoryCell& as_it_is = experiment.cells.front();
  const double files = median(all_of(as_it_is, &MemoryTrial::files_bytes));
  const double seen = median(all_of(as_it_is, &MemoryTrial::mean_bytes)) + files;
  double whole = experiment.record ? experiment.record->mean.sum() + files : seen;
  verdict.run_mean = of_runs(experiment.cells, &MemoryTrial::mean_bytes);
  verdict.run_peak = of_runs(experiment.cells, &MemoryTrial::peak_bytes);
  const Spread common = common_spread_of(experiment.cells, &MemoryTrial::mean_bytes);
  for (std::size_t i = 1; i < experiment.cells.size(); ++i)
    verdict.fixes.push_back(fix_of(as_it_is, experiment.cells[i], i, whole, common));
  for (std::size_t i = 0; i < verdict.fixes.size(); ++i) {
    if (!verdict.fixes[i].helps) continue;
    if (!verdict.best_fix || verdict.fixes[i].saved.value > verdict.fixes[*verdict.best_fix].saved.value)
      verdict.best_fix = i;
  }
  verdict.mean_bytes = whole;
  if (!experiment.record) {
    verdict.cause = whole < kLittleBytes ? MemoryCause::kLittle : MemoryCause::kUndecided;
    verdict.doubt = whole < kLittleBytes ? MemoryDoubt::kNone : MemoryDoubt::kNothingRecorded;
    return verdict;
  }
  const MemoryRecord& record = *experiment.record;
  MemoryParts mean = record.mean;
  if (differ(seen, whole, whole)) mean.free_bytes = settled_free_bytes(experiment, verdict.fixes);
  whole = verdict.mean_bytes = mean.sum() + files;
  verdict.parts = divided(mean, {.by_one_arena = saved_by(experiment, verdict.fixes, MemoryTreatment::kOneArena),
                                 .without_caches = saved_by(experiment, verdict.fixes, MemoryTreatment::kNoCaches),
                                 .by_trimming = saved_by(experiment, verdict.fixes, MemoryTreatment::kTrimmed)});
  verdict.is_divided = is_divided(experiment);
  verdict.parts[MemoryPart::kShared] += files;
  verdict.at_peak = divided_like(record.at_peak, verdict.parts);
  verdict.at_peak[MemoryPart::kShared] += record.files_at_peak;
  verdict.leak_share = leak_share_of(record);
  verdict.doubt = doubt_of(experiment, verdict, seen);
  if (whole < kLittleBytes && seen < kLittleBytes) {
    verdict.cause = MemoryCause::kLittle;  // whatever it is
    verdict.doubt = record.dropped > 0 ? MemoryDoubt::kRecordingIsCut : MemoryDoubt::kNone;
  } else if (verdict.doubt == MemoryDoubt::kNone) {
    verdict.cause = refined(greatest_of(verdict.parts), record, verdict.leak_share);
    if (verdict.cause == MemoryCause::kHoles) verdict.doubt = doubt_of_holes(experiment, verdict);
    if (verdict.doubt != MemoryDoubt::kNone) verdict.cause = MemoryCause::kUndecided;
  }
  return verdict;
}

}  // namespace freehold::doctor
