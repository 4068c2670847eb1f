// SPDX-License-Identifier: MIT
#include "lab/pools/experiment.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "lab/experiment/command.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::cli::pools {
namespace {

Measured<Report> measure(const Job& job, Interrupts& interrupts) {
  // Preparing a pool takes longer than the test itself, and a thread looks at the clock only between blocks of operations.
  const std::chrono::seconds limit(60 + 50 * job.milliseconds / 1000);
  return measure_in_worker<Report>(
      kWorkerCommand, words_of(job, kJobFields), "", limit, interrupts,
      [](const Report& report) { return report.group.correct == 1 ? "" : "two threads held the same slot"; });
}

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
  const auto describe = [&](const Cell& cell) {
    const std::string shards = cell.shards == 0 ? "" : fmt::format(" × {}", cell.shards);
    return fmt::format("{}, {}{}{}", text_of(cell.row), settings.pools[cell.pool]->name, shards,
                       cell.counted ? ", counted" : "");
  };
  return measure_sets(
      settings.repeat, results.series, progress, describe,
      [&](const Series& series) { return measure(job_of(settings, series.cell), interrupts); }, sample_of);
}

bool simulate_all(Results& results, Interrupts& interrupts, Progress& progress) {
  if (!results.settings.simulate) return true;
  results.simulated = simulate(results.settings.pools, interrupts, progress);
  return interrupts.arrived() == 0;
}

}  // namespace

int worker_main(const std::vector<std::string>& arguments) {
  return run_as_worker([&] {
    const Job job = job_of_words<Job>(kWorkerCommand, arguments, kJobFields);
    const Candidate* const candidate = find_by_name(candidates(), job.pool);
    if (candidate == nullptr) throw std::runtime_error("no such pool");
    return candidate->run(job);
  });
}

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  begin_series(results.series, cells_of(settings));
  record_run(results,
             [&] { return measure_all(results, interrupts, progress) && simulate_all(results, interrupts, progress); });
  return results;
}

}  // namespace freehold::cli::pools
