// SPDX-License-Identifier: MIT
#include "lab/pools/experiment.hpp"

#include <fmt/format.h>

#include "lab/experiment/run.hpp"
#include "lab/pools/worker.hpp"

namespace freehold::cli::pools {
namespace {

Sample sample_of(const Report& report) {
  return {.elapsed_ns = report.group.elapsed_ns,
          .operations = report.operations,
          .failures = report.failures,
          .counted = report.counted,
          .conflicts = report.conflicts,
          .cpu_ns = report.group.cpu_ns,
          .peak_rss_bytes = report.group.peak_rss_bytes};
}

bool measure_all(Results& results, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = results.settings;
  const std::vector<Cell> cells = cells_of(settings);
  const auto describe = [&](const Cell& cell) {
    const std::string shards = cell.shards == 0 ? "" : fmt::format(" × {}", cell.shards);
    return fmt::format("{}, {}{}{}", text_of(cell.row), settings.pools[cell.pool]->name, shards,
                       cell.counted ? ", counted" : "");
  };
  return measure_sets(
      settings.repeat, results.series, progress, [&](std::uint32_t set) { return order_of(cells, set); }, describe,
      [&](const Series& series) { return measure(job_of(settings, series.cell), interrupts); }, sample_of);
}

bool simulate_all(Results& results, Interrupts& interrupts, Progress& progress) {
  if (!results.settings.simulate) return true;
  results.simulated = simulate(results.settings.pools, interrupts, progress);
  return interrupts.arrived() == 0;
}

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  begin_series(results.series, cells_of(settings));
  record_run(results,
             [&] { return measure_all(results, interrupts, progress) && simulate_all(results, interrupts, progress); });
  return results;
}

}  // namespace freehold::cli::pools
