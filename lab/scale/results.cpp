// SPDX-License-Identifier: MIT
#include "lab/scale/results.hpp"

#include <algorithm>

namespace freehold::cli::scale {
namespace {

double seconds_of(const Sample& sample) { return 1e-9 * static_cast<double>(sample.elapsed_ns); }

}  // namespace

Job job_of(const Results& results, const Series& series) {
  return {.test = series.cell.test,
          .mode = series.cell.mode,
          .source = results.settings.subjects[series.cell.subject].source,
          .workers = series.cell.workers,
          .iterations = results.settings.iterations,
          .units = results.units_of(series.cell.test),
          .one_cpu = results.settings.one_cpu};
}

std::vector<double> times_of(const Series& series) { return figures_of(series, seconds_of); }

std::optional<double> median_time(const Series* series) {
  if (series == nullptr) return {};
  return median_if_any(times_of(*series));
}

std::optional<double> nanoseconds_per_operation(const Results& results, const Series* series) {
  const auto time = median_time(series);
  if (!time) return {};
  return 1e9 * *time / static_cast<double>(operations_of(job_of(results, *series)));
}

std::optional<std::uint64_t> peak_rss(const Series* series) {
  std::optional<std::uint64_t> peak;
  if (series == nullptr) return peak;
  for (const auto& sample : series->samples) {
    if (sample) peak = std::max(peak.value_or(0), sample->peak_rss_bytes);
  }
  return peak;
}

const Series* base_of(const Results& results, const Cell& cell) {
  const Series* base = nullptr;
  for (const Series& series : results.series) {
    const Cell& other = series.cell;
    if (other.test != cell.test || other.mode != cell.mode || other.subject != cell.subject) continue;
    if (base == nullptr || other.workers < base->cell.workers) base = &series;
  }
  return base;
}

std::optional<double> speed(const Results& results, const Cell& cell) {
  const auto base = median_time(base_of(results, cell));
  const auto time = median_time(results.find(cell));
  return base && time ? std::optional(*base / *time) : std::nullopt;
}

std::optional<double> speed_in_set(const Results& results, const Cell& cell, std::size_t set) {
  const Series* base = base_of(results, cell);
  const Series* series = results.find(cell);
  for (const Series* one : {base, series}) {
    if (one == nullptr || one->samples.size() <= set || !one->samples[set]) return {};
  }
  return seconds_of(*base->samples[set]) / seconds_of(*series->samples[set]);
}

double ideal_speed(std::uint32_t iterations, std::uint32_t workers, unsigned cpus) {
  const double by_shares = static_cast<double>(iterations) / share_of(iterations, workers, 0);
  return std::min<double>(by_shares, cpus);
}

}  // namespace freehold::cli::scale
