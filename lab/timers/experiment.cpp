// SPDX-License-Identifier: MIT
#include "lab/timers/experiment.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/support/library.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/job_words.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::cli::timers {
namespace {

// Preloads `library` unless it is empty.
Measured<Report> measure(const Job& job, const std::string& library, Interrupts& interrupts) {
  const auto complaint = [&](const Report& report) -> std::string {
    std::string why = library.empty() ? "" : wrong_malloc(library, report.malloc_library);
    if (why.empty() && report.group.correct != 1) why = "the timers that fired are not the timers that were set";
    return why;
  };
  // A user ends by its own CPU time, of which the load's threads leave it a part; setting millions of timers up comes first.
  const std::chrono::seconds limit(60 + job.timers / 50'000 +
                                   std::uint64_t{job.milliseconds} * (job.users + job.background) / 1000);
  return measure_in_worker<Report>(kWorkerCommand, words_of(job, kJobFields), library, limit, interrupts, complaint);
}

Sample sample_of(const Report& report) {
  return {.costs = report.costs,
          .background_operations = report.background_operations,
          .peak_rss_bytes = report.group.peak_rss_bytes};
}

bool measure_all(Results& results, Interrupts& interrupts, Progress& progress) {
  const Settings& settings = results.settings;
  const auto structure_of = [&](const Cell& cell) -> const Candidate& { return *settings.structures[cell.structure]; };
  const auto describe = [&](const Cell& cell) {
    return fmt::format("{}, {}, {}", text_of(cell.row), structure_of(cell).name, name_of(cell.load));
  };
  const auto measure_one = [&](const Series& series) {
    const bool preloads = structure_of(series.cell).preloads_freehold;
    return measure(job_of(settings, series.cell), preloads ? settings.freehold_library : "", interrupts);
  };
  return measure_sets(settings.repeat, results.series, progress, describe, measure_one, sample_of);
}

}  // namespace

int worker_main(const std::vector<std::string>& arguments) {
  return run_as_worker([&] {
    const Job job = job_of_words<Job>(kWorkerCommand, arguments, kJobFields);
    const Candidate* const candidate = find_by_name(candidates(), job.structure);
    if (candidate == nullptr || !runs(*candidate, job.test)) throw std::runtime_error("no such structure");
    Report report = (job.test == Trial::kShared ? candidate->run_shared : candidate->run)(job);
    note_malloc_library(report.malloc_library);
    return report;
  });
}

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results;
  results.settings = settings;
  begin_series(results.series, cells_of(settings));
  record_run(results, [&] { return measure_all(results, interrupts, progress); });
  return results;
}

}  // namespace freehold::cli::timers
