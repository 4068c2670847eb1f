// SPDX-License-Identifier: MIT
#include "lab/pools/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lab/experiment/series.hpp"

namespace freehold::cli::pools {
namespace {

constexpr double kWideSpread = 0.25;

double cost_of(const Sample& sample) {
  return static_cast<double>(sample.elapsed_ns) / static_cast<double>(std::max<std::uint64_t>(sample.operations, 1));
}

std::uint64_t wished_operations(const Results& results, const Series& series) {
  const Row& row = series.cell.row;
  if (row.test == Trial::kCrc) {
    const std::uint32_t writers = (row.threads + 1) / 2;
    return results.settings.operations * (writers + std::uint64_t{row.threads - writers} * results.settings.crc_reads);
  }
  // Of a pair of threads at a ring one acquires, the other releases.
  return results.settings.operations * (row.test == Trial::kRing ? row.threads / 2 : row.threads);
}

std::string name_of(const Results& results, const Series& series) { return results.settings.pools[series.cell.pool]->name; }

bool is_pool(const Results& results, const Series& series) {
  return results.settings.pools[series.cell.pool]->kind != Kind::kBaseline && !series.cell.counted;
}

void add_ratios(Comparison& comparison, const Series& ours, const Series& other) {
  const std::vector<double> ratios =
      ratios_of(ours, other, [](const Sample& a, const Sample& b) { return cost_of(a) / cost_of(b); });
  comparison.least = ratios.empty() ? std::numeric_limits<double>::infinity() : std::ranges::min(ratios);
  comparison.greatest = ratios.empty() ? 0 : std::ranges::max(ratios);
}

}  // namespace

const Series* Results::find(const Row& row, std::size_t pool, std::uint32_t shards, bool counted) const {
  return find(Cell{row, pool, shards, counted});
}

std::vector<double> costs_of(const Series& series) { return figures_of(series, cost_of); }

std::optional<double> cost(const Series* series) {
  if (series == nullptr) return {};
  return median_if_any(costs_of(*series));
}

std::optional<double> contention(const Series* series) {
  if (series == nullptr) return {};
  std::vector<double> shares;
  for (const auto& sample : series->samples) {
    if (sample && sample->counted > 0)
      shares.push_back(static_cast<double>(sample->conflicts) / static_cast<double>(sample->counted));
  }
  return median_if_any(std::move(shares));
}

bool is_shortened(const Results& results, const Series& series) {
  return std::ranges::any_of(
      series.samples, [&](const auto& sample) { return sample && sample->operations < wished_operations(results, series); });
}

const Series* best_of(const Results& results, const Row& row, std::string_view except) {
  const Series* best = nullptr;
  for (const Series& series : results.series) {
    if (series.cell.row != row || !is_pool(results, series) || name_of(results, series) == except) continue;
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
  const auto& pools = results.settings.pools;
  for (const Row& row : rows_of(results.settings)) {
    const Candidate* const ours = ours_in(results, row);
    if (ours == nullptr) continue;
    const Series* const mine = results.find(row, static_cast<std::size_t>(std::ranges::find(pools, ours) - pools.begin()));
    const Series* const other = best_of(results, row, ours->name);
    if (!cost(mine) || other == nullptr) continue;
    all.push_back({.row = row, .ours = *cost(mine), .other = *cost(other), .name = name_of(results, *other)});
    add_ratios(all.back(), *mine, *other);
  }
  std::ranges::sort(all, std::ranges::greater{}, &Comparison::ratio);
  return all;
}

std::vector<std::string> failures_of(const Results& results) {
  std::vector<std::string> failures;
  for (const Series& series : results.series) {
    if (!series.failure.empty())
      failures.push_back(failure_note(name_of(results, series), text_of(series.cell.row), series.failure));
  }
  return failures;
}

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes = failures_of(results);
  if (!results.complete) notes.emplace(notes.begin(), kInterruptedNote);
  SpreadNote spreads(kWideSpread);
  std::size_t shortened = 0;
  std::uint64_t failures = 0;
  for (const Series& series : results.series) {
    spreads.add(costs_of(series));
    shortened += is_shortened(results, series) ? 1 : 0;
    for (const auto& sample : series.samples) failures += sample ? sample->failures : 0;
  }
  if (shortened > 0) {
    notes.push_back(fmt::format("~ {} of {} figures come from fewer operations, because a test ends after {} ms.", shortened,
                                spreads.medians(), results.settings.milliseconds));
  }
  spreads.write_to(notes);
  if (failures > 0) notes.push_back(fmt::format("{} acquires found no slot and were repeated.", failures));
  return notes;
}

}  // namespace freehold::cli::pools
