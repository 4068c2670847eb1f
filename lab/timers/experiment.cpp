// SPDX-License-Identifier: MIT
#include "lab/timers/experiment.hpp"

#include <fmt/format.h>

#include "lab/experiment/run.hpp"
#include "lab/timers/worker.hpp"

namespace freehold::cli::timers {
namespace {

Sample sample_of(const Report& report) {
  return {.costs = report.costs,
          .background_operations = report.background_operations,
          .peak_rss_bytes = report.group.peak_rss_bytes};
}

bool measure_all(Results& results, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = results.settings;
  const std::vector<Cell> cells = cells_of(settings);
  const auto structure_of = [&](const Cell& cell) -> const Candidate& { return *settings.structures[cell.structure]; };
  const auto describe = [&](const Cell& cell) {
    return fmt::format("{}, {}, {}", text_of(cell.row), structure_of(cell).name, name_of(cell.load));
  };
  const auto measure_one = [&](const Series& series) {
    const bool preloads = structure_of(series.cell).preloads_freehold;
    return measure(job_of(settings, series.cell), preloads ? settings.freehold_library : "", interrupts);
  };
  return measure_sets(
      settings.repeat, results.series, progress, [&](std::uint32_t set) { return order_of(cells, set); }, describe,
      measure_one, sample_of);
}

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  begin_series(results.series, cells_of(settings));
  record_run(results, [&] { return measure_all(results, interrupts, progress); });
  return results;
}

}  // namespace freehold::cli::timers
