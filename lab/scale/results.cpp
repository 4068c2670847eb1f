// SPDX-License-Identifier: MIT
#include <algorithm>

#include "lab/scale/experiment.hpp"

namespace freehold::lab::scale {

Sets times_of(const Series* series) {
  return sets_of(series, [](const Report& report) { return 1e-9 * static_cast<double>(report.elapsed_ns); });
}

std::optional<double> median_time(const Series* series) { return median_of(times_of(series)); }

std::optional<double> nanoseconds_per_operation(const Series* series) {
  const auto time = median_time(series);
  if (!time) return {};
  return 1e9 * *time / static_cast<double>(series->job.operations());
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
    const Job& job = series.job;
    if (job.test != cell.test || job.mode != cell.mode || job.subject != cell.subject) continue;
    if (base == nullptr || job.workers < base->job.workers) base = &series;
  }
  return base;
}

std::optional<double> speed(const Results& results, const Cell& cell) {
  const auto base = median_time(base_of(results, cell));
  const auto time = median_time(results.find(cell));
  return base && time ? std::optional(*base / *time) : std::nullopt;
}

Sets speeds_of(const Results& results, const Cell& cell) {
  return quotient(times_of(base_of(results, cell)), times_of(results.find(cell)));
}

double ideal_speed(std::uint32_t iterations, std::uint32_t workers, unsigned cpus) {
  const double by_shares = static_cast<double>(iterations) / share_of(iterations, workers, 0);
  return std::min<double>(by_shares, cpus);
}

}  // namespace freehold::lab::scale
