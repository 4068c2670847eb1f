#include "cli/pools/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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
  return results.settings.pools[series.cell.pool]->kind != Kind::kFloor && !series.cell.counted;
}

void add_ratios(Comparison& comparison, const Series& ours, const Series& other) {
  comparison.least = std::numeric_limits<double>::infinity();
  for (std::size_t set = 0; set < std::min(ours.samples.size(), other.samples.size()); ++set) {
    if (!ours.samples[set] || !other.samples[set]) continue;
    const double ratio = cost_of(*ours.samples[set]) / cost_of(*other.samples[set]);
    comparison.least = std::min(comparison.least, ratio);
    comparison.greatest = std::max(comparison.greatest, ratio);
  }
}

}  // namespace

const Series* Results::find(const Row& row, std::size_t pool, std::uint32_t shards, bool counted) const {
  const auto found = std::ranges::find(series, Cell{row, pool, shards, counted}, &Series::cell);
  return found == series.end() ? nullptr : &*found;
}

std::vector<double> costs_of(const Series& series) {
  std::vector<double> costs;
  for (const auto& sample : series.samples) {
    if (sample) costs.push_back(cost_of(*sample));
  }
  return costs;
}

std::optional<double> cost(const Series* series) {
  if (series == nullptr) return {};
  const std::vector<double> costs = costs_of(*series);
  return costs.empty() ? std::nullopt : std::optional(median(costs));
}

std::optional<double> contention(const Series* series) {
  if (series == nullptr) return {};
  std::vector<double> shares;
  for (const auto& sample : series->samples) {
    if (sample && sample->counted > 0)
      shares.push_back(static_cast<double>(sample->conflicts) / static_cast<double>(sample->counted));
  }
  return shares.empty() ? std::nullopt : std::optional(median(shares));
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

const Contender* ours_in(const Results& results, const Row& row) {
  const auto& pools = results.settings.pools;
  auto ours = row.threads == 1 ? std::ranges::find(pools, kOursAlone, &Contender::name) : pools.end();
  if (ours == pools.end()) ours = std::ranges::find(pools, kOurs, &Contender::name);
  return ours == pools.end() ? nullptr : *ours;
}

std::vector<Comparison> comparisons(const Results& results) {
  std::vector<Comparison> all;
  const auto& pools = results.settings.pools;
  for (const Row& row : rows_of(results.settings)) {
    const Contender* const ours = ours_in(results, row);
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

std::vector<std::string> notes_of(const Results& results) {
  std::vector<std::string> notes;
  std::size_t measured = 0, wide = 0, shortened = 0;
  double widest = 0;
  std::uint64_t failures = 0;
  for (const Series& series : results.series) {
    if (!series.failure.empty()) {
      notes.push_back(
          fmt::format("{} failed in {}: {}.", name_of(results, series), text_of(series.cell.row), series.failure));
    }
    const std::vector<double> costs = costs_of(series);
    measured += costs.empty() ? 0 : 1;
    wide += spread(costs) > kWideSpread ? 1 : 0;
    widest = std::max(widest, spread(costs));
    shortened += is_shortened(results, series) ? 1 : 0;
    for (const auto& sample : series.samples) failures += sample ? sample->failures : 0;
  }
  if (!results.complete) notes.insert(notes.begin(), "Interrupted: what was finished is shown.");
  if (shortened > 0) {
    notes.push_back(fmt::format("~ {} of {} figures come from fewer operations: a test ends after {} ms.", shortened,
                                measured, results.settings.milliseconds));
  }
  if (wide > 0) {
    notes.push_back(fmt::format("{} of {} medians come from sets that differ by more than {:.0f}% (the worst by {:.0f}%).",
                                wide, measured, 100 * kWideSpread, 100 * widest));
  }
  if (failures > 0) notes.push_back(fmt::format("{} acquires found no slot and were repeated.", failures));
  return notes;
}

}  // namespace freehold::cli::pools
