#include "cli/pools/experiment.hpp"

#include <fmt/format.h>

#include <chrono>

#include "cli/pools/worker.hpp"
#include "cli/support/sets.hpp"

namespace freehold::cli::pools {
namespace {

std::string describe(const Settings& settings, const Cell& cell) {
  const std::string shards = cell.shards == 0 ? "" : fmt::format(" × {}", cell.shards);
  return fmt::format("{}, {}{}{}", text_of(cell.row), settings.pools[cell.pool]->name, shards,
                     cell.counted ? ", counted" : "");
}

// False: interrupted.
bool measure_cell(const Settings& settings, Series& series, std::uint32_t set, Interrupts& interrupts) {
  if (!series.failure.empty()) return true;  // it would fail again, perhaps by waiting for its time limit
  const Measured measured = measure(job_of(settings, series.cell), interrupts);
  return keep(measured, series, set, [](const Report& report) {
    return Sample{.elapsed_ns = report.crew.elapsed_ns,
                  .operations = report.operations,
                  .failures = report.failures,
                  .counted = report.counted,
                  .conflicts = report.conflicts,
                  .cpu_ns = report.crew.cpu_ns,
                  .peak_rss_bytes = report.crew.peak_rss_bytes};
  });
}

bool measure_all(Results& results, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = results.settings;
  const std::vector<Cell> cells = cells_of(settings);
  return measure_sets(
      settings.repeat, cells.size(), [&](std::uint32_t set) { return order_of(cells, set); },
      [&](std::size_t done, std::size_t of, std::size_t i) { progress.show(done, of, describe(settings, cells[i])); },
      [&](std::size_t i, std::uint32_t set) { return measure_cell(settings, results.series[i], set, interrupts); });
}

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  results.machine = this_machine();
  results.date = today();
  for (const Cell& cell : cells_of(settings)) results.series.push_back({.cell = cell, .samples = {}, .failure = {}});
  const auto begin = std::chrono::steady_clock::now();
  results.complete = measure_all(results, interrupts, progress);
  if (settings.simulate && results.complete) {
    results.simulated = simulate(settings.pools, interrupts, progress);
    results.complete = interrupts.arrived() == 0;
  }
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return results;
}

}  // namespace freehold::cli::pools
