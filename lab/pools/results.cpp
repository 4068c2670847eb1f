// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lab/pools/experiment.hpp"

namespace freehold::lab::pools {
namespace {

constexpr double kWideSpread = 0.25;

double quotient_of(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::uint64_t>(b, 1));
}

}  // namespace

std::uint64_t Job::wished_operations() const {
  if (test == Trial::kCrc) {
    const std::uint32_t writers = (threads + 1) / 2;
    return operations * (writers + std::uint64_t{threads - writers} * reads);
  }
  // At a ring one thread of each pair acquires, the other releases.
  return operations * (test == Trial::kRing ? threads / 2 : threads);
}

const Series* Results::find(const Row& row, std::string_view pool, std::uint32_t shards, bool counted) const {
  return find_if([&](const Job& job) {
    return job.row() == row && job.pool->name == pool && job.shards == shards && job.counted == counted;
  });
}

Sets costs_of(const Series* series) {
  return sets_of(series, [](const Report& report) { return quotient_of(report.elapsed_ns, report.operations); });
}

std::optional<double> cost(const Series* series) { return median_of(costs_of(series)); }

std::optional<double> contention(const Series* series) {
  if (series == nullptr || !series->job.counted) return {};
  return median_of(sets_of(series, [](const Report& report) { return quotient_of(report.conflicts, report.operations); }));
}

std::vector<Footprint> footprints(const Results& results) {
  const auto scatter = [&](Trial test, const Candidate* pool) {
    return median_of(
        sets_of(results.find({test, Context::kFresh, 1}, pool->name), [](const Report& report) { return report.scatter; }));
  };
  std::vector<Footprint> all;
  for (const Candidate* pool : results.settings.pools)
    all.push_back({pool->name,
                   pool->bookkeeping ? std::optional(pool->bookkeeping(results.settings.slot_bytes)) : std::nullopt,
                   scatter(Trial::kAlike, pool), scatter(Trial::kMixed, pool)});
  return all;
}

bool is_shortened(const Series& series) {
  return std::ranges::any_of(
      series.samples, [&](const auto& sample) { return sample && sample->operations < series.job.wished_operations(); });
}

const Series* best_of(const Results& results, const Row& row, std::string_view except) {
  const Series* best = nullptr;
  for (const Series& series : results.series) {
    const Job& job = series.job;
    if (job.row() != row || job.counted || job.pool->kind == Kind::kBaseline || job.pool->name == except) continue;
    const auto mine = cost(&series);
    if (mine && (best == nullptr || *mine < *cost(best))) best = &series;
  }
  return best;
}

const Candidate* ours_in(const Results& results, const Row& row) {
  const auto& pools = results.settings.pools;
  auto ours = row.threads == 1 ? std::ranges::find(pools, kOursAlone, &Candidate::name) : pools.end();
  if (ours == pools.end()) ours = std::ranges::find(pools, kOurs, &Candidate::name);
  return ours == pools.end() ? nullptr : *ours;
}

std::vector<Comparison> comparisons(const Results& results) {
  std::vector<Comparison> all;
  for (const Row& row : rows_of(results.settings)) {
    const Candidate* const ours = ours_in(results, row);
    if (ours == nullptr) continue;
    const Series* const mine = results.find(row, ours->name);
    const Series* const other = best_of(results, row, ours->name);
    if (!cost(mine) || other == nullptr) continue;
    // They may have no set in common.
    const Range range = range_of(quotient(costs_of(mine), costs_of(other)))
                            .value_or(Range{.least = std::numeric_limits<double>::infinity(), .greatest = 0});
    all.push_back({row, *cost(mine), *cost(other), other->job.name(), range.least, range.greatest});
  }
  std::ranges::sort(all, std::ranges::greater{}, &Comparison::ratio);
  return all;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = first_notes(results);
  std::vector<Sets> medians;
  std::uint64_t failures = 0;
  for (const Series& series : results.series) {
    if (cost(&series)) medians.push_back(costs_of(&series));
    for (const auto& sample : series.samples) failures += sample ? sample->failures : 0;
  }
  if (const auto shortened = std::ranges::count_if(results.series, is_shortened); shortened > 0) {
    notes.push_back(
        fmt::format("~ {} of {} figures come from fewer operations, because a test ends after {} ms; --whole has no limit.",
                    shortened, medians.size(), results.settings.milliseconds));
  }
  note_spread(kWideSpread, medians, notes);
  if (failures > 0) notes.push_back(fmt::format("{} acquires found no slot and were repeated.", failures));
  return notes;
}

}  // namespace freehold::lab::pools
