#include "cli/timers/experiment.hpp"

#include <fmt/format.h>

#include <chrono>

#include "cli/timers/worker.hpp"

namespace freehold::cli::timers {
namespace {

std::string describe(const Settings& settings, const Cell& cell) {
  return fmt::format("{}, {}, {}", text_of(cell.row), settings.structures[cell.structure]->name, name_of(cell.load));
}

// False: interrupted.
bool measure_cell(const Settings& settings, Series& series, std::uint32_t set, Interrupts& interrupts) {
  if (!series.failure.empty()) return true;  // it would fail again, perhaps by waiting for its time limit
  const bool preloads = settings.structures[series.cell.structure]->preloads_freehold;
  const Measured measured = measure(job_of(settings, series.cell), preloads ? settings.freehold_library : "", interrupts);
  if (std::holds_alternative<Interrupted>(measured)) return false;
  if (const NoReport* none = std::get_if<NoReport>(&measured)) {
    series.failure = none->why;
    return true;
  }
  const Report& report = std::get<Report>(measured);
  series.samples.resize(set + 1);
  series.samples[set] = Sample{.costs = report.costs,
                               .background_operations = report.background_operations,
                               .peak_rss_bytes = report.crew.peak_rss_bytes};
  return true;
}

bool measure_sets(Results& results, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = results.settings;
  const std::vector<Cell> cells = cells_of(settings);
  std::size_t done = 0;
  for (std::uint32_t set = 0; set < settings.repeat; ++set) {
    for (const std::size_t i : order_of(cells, set)) {
      progress.show(done++, cells.size() * settings.repeat, describe(settings, cells[i]));
      if (!measure_cell(settings, results.series[i], set, interrupts)) return false;
    }
  }
  return true;
}

}  // namespace

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  results.machine = this_machine();
  results.date = today();
  for (const Cell& cell : cells_of(settings)) results.series.push_back({.cell = cell, .samples = {}, .failure = {}});
  const auto begin = std::chrono::steady_clock::now();
  results.complete = measure_sets(results, interrupts, progress);
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return results;
}

}  // namespace freehold::cli::timers
