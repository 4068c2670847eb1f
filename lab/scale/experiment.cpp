// SPDX-License-Identifier: MIT
#include "lab/scale/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment/assets.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::lab::scale {
namespace {
using nlohmann::ordered_json;

constexpr std::uint32_t kMostWorkers = 1024;
constexpr std::uint32_t kArticlesIterations = 24;

ordered_json subjects_json(const Settings& settings) {
  return list_json(settings.subjects, [](const Subject& s) -> ordered_json {
    return {{"name", s.name}, {"library", s.library}, {"source", name_of(s.source)}};
  });
}

void choose_allocators(Settings& settings, const std::string& option, const std::string& text) {
  std::vector<Allocator> allocators;
  for (const std::string& one : split_list(option, text)) allocators.push_back(find_allocator(one));
  settings.subjects = subjects_of(allocators);
}

void choose_pool(Settings& settings, const std::string& option, const std::string& text) {
  if (text != name_of(Mode::kPool))
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not pool", option, printable(text)));
  settings.modes.push_back(Mode::kPool);
  settings.tests.assign(kPoolWorkloads.begin(), kPoolWorkloads.end());
}

OptionTable<Settings>& options() {
  static OptionTable<Settings> table = [] {
    OptionTable<Settings> all;
    all.row("--allocators",
            "system, freehold, jemalloc, tcmalloc, tbbmalloc, mimalloc, /path/to/lib.so or NAME=PATH [system,freehold]",
            "LIST", choose_allocators, subjects_json)
        .as("subjects")
        .numbers("--workers", &Settings::workers, 1, kMostWorkers, "Numbers of workers", {1})
        .flag("--one-cpu", &Settings::one_cpu, "Keep all workers of a measurement on one CPU")
        .written("one_cpu", &Settings::one_cpu)
        .number("--iterations", &Settings::iterations, 1, 100'000, "Number of iterations that the workers share")
        .row("--via", "pool: add the mode pool; run the tests compute, allocate and locked", "pool", choose_pool)
        .names("--tests", &Settings::tests, kWorkloads)
        .names("--mode", &Settings::modes, kModes)
        .as("modes")
        .measured("Time of one worker in a measurement, about", "Short run: one set, 60 ms for each measurement",
                  [](Settings& settings) {
                    settings.repeat = 1;
                    settings.milliseconds = 60;
                  });
    return all;
  }();
  return table;
}

// The system's allocator and, if it can be found, Freehold.
void choose_usual_allocators(Settings& settings) {
  std::vector<Allocator> allocators{find_allocator("system")};
  try {
    allocators.push_back(find_allocator("freehold"));
  } catch (const Failure& failure) {
    settings.notes.push_back(fmt::format("Without Freehold: {}.", failure.what()));
  }
  settings.subjects = subjects_of(allocators);
}

void add_jobs(std::vector<Job>& jobs, const Settings& settings, Workload test, Mode mode) {
  for (const Subject& subject : settings.subjects) {
    if (runs_as_processes(test) && subject.source != Source::kMalloc) continue;
    if (needs_freehold(test) && subject.name != "freehold") continue;
    for (const std::uint32_t workers : workers_of(settings, test))
      jobs.push_back({.test = test,
                      .mode = mode,
                      .source = subject.source,
                      .workers = workers,
                      .iterations = settings.iterations,
                      .units = 0,
                      .one_cpu = settings.one_cpu,
                      .milliseconds = settings.milliseconds,
                      .subject = subject.name,
                      .library = subject.library});
  }
}

// Finds how many units of a workload are in an iteration, so that all iterations take the wished time with the plain
// allocator and the fewest workers. Grows in steps, because the first unit also pays for a cold start.
class Calibration {
 public:
  Calibration(Results& results, Interrupts& interrupts) : results_(results), interrupts_(interrupts) {}

  // `first`: the first job of a workload.
  [[nodiscard]] std::uint64_t units_for(const Job& first) {
    const double wished_ns = 1e6 * results_.settings.milliseconds;
    std::uint64_t units = 1;
    for (;;) {
      const auto taken_ns = try_units(first, units);
      if (!taken_ns) return 1;
      const double factor = wished_ns / *taken_ns;
      const bool close = factor < 4;
      units =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(units) * std::min(factor, 30.0) + 0.5));
      if (close) return units;
    }
  }

 private:
  // Nanoseconds of `units` units. None: interrupted or failed.
  [[nodiscard]] std::optional<double> try_units(const Job& first, std::uint64_t units) {
    const Settings& settings = results_.settings;
    const Job job{.test = first.test,
                  .workers = workers_of(settings, first.test).front(),
                  .iterations = settings.iterations,
                  .units = units,
                  .one_cpu = settings.one_cpu,
                  .milliseconds = settings.milliseconds,
                  .library = needs_freehold(first.test) ? first.library : ""};
    const Measured<Report> measured = measure(job, interrupts_);
    if (const NoReport* none = std::get_if<NoReport>(&measured))
      results_.notes.push_back(fmt::format("{} could not be calibrated: {}", name_of(first.test), none->why));
    const Report* const report = std::get_if<Report>(&measured);
    return report == nullptr ? std::nullopt
                             : std::optional(static_cast<double>(std::max<std::uint64_t>(report->elapsed_ns, 1)));
  }

  Results& results_;
  Interrupts& interrupts_;
};

bool calibrate(Results& results, Interrupts& interrupts, Progress& progress) {
  for (const Workload test : results.settings.tests) {
    const auto first = std::ranges::find(results.series, test, [](const Series& series) { return series.job.test; });
    if (first == results.series.end()) continue;
    progress.show(0, 0, std::string(name_of(test)));
    SampleStore* const store = results.settings.store;
    const std::string key =
        fmt::format("units of {} in {} ms of {} iterations{}", name_of(test), results.settings.milliseconds,
                    results.settings.iterations, results.settings.one_cpu ? " on one CPU" : "");
    const auto stored = store != nullptr ? store->find<std::uint64_t>(key) : std::nullopt;
    const std::uint64_t units = stored ? *stored : Calibration(results, interrupts).units_for(first->job);
    if (store != nullptr && !stored && interrupts.arrived() == 0) store->add(key, units);
    for (Series& series : results.series)
      if (series.job.test == test) series.job.units = units;
    if (interrupts.arrived() != 0) return false;
  }
  return true;
}

}  // namespace

PageParts page_parts() {
  return {.title = "Freehold: the scaling experiment",
          .brand = "Freehold · scaling experiment",
          .question = "Do threads scale like processes?",
          .sections = assets::scale_html,
          .script = assets::scale_js};
}

std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators) {
  std::vector<Subject> subjects;
  for (const Allocator& allocator : allocators) subjects.push_back({allocator.name, allocator.library, Source::kMalloc});
  for (const Source source : {Source::kOwnerArticle, Source::kOwnerMutex, Source::kOwnerLockFree})
    subjects.push_back({std::string(name_of(source)), "", source});
  for (auto subject = subjects.begin(); subject != subjects.end(); ++subject) {
    if (std::ranges::find(subjects.begin(), subject, subject->name, &Subject::name) == subject) continue;
    throw Failure(kExitRefused, fmt::format("--allocators: the name '{}' is taken; give one of them another as NAME=PATH",
                                            printable(subject->name)));
  }
  return subjects;
}

std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test) {
  if (test != Workload::kHandover) return settings.workers;
  std::vector<std::uint32_t> pairs{2};
  for (const std::uint32_t workers : settings.workers) {
    if (workers > 2 && workers % 2 == 0) pairs.push_back(workers);
  }
  return pairs;
}

std::vector<Job> jobs_of(const Settings& settings) {
  std::vector<Job> jobs;
  for (const Mode mode : settings.modes) {
    for (const Workload test : settings.tests) {
      if (mode >= Mode::kPool ? runs_in_a_pool(test) : runs_as_processes(test)) add_jobs(jobs, settings, test, mode);
    }
  }
  if (std::ranges::count(settings.modes, Mode::kThreads) == 0) return jobs;
  for (const Workload test : settings.tests) {
    if (!runs_as_processes(test)) add_jobs(jobs, settings, test, Mode::kThreads);
  }
  return jobs;
}

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results(settings, jobs_of(settings));
  results.notes = settings.notes;
  record_run(results, [&] {
    return calibrate(results, interrupts, progress) &&
           measure_sets(settings.repeat, results.series, interrupts, progress, settings.store);
  });
  return results;
}

void add_options(Command& command) { options().add_to(command, "docs/scale.md explains the workloads and the method."); }

int run_command() {
  Settings settings = options().settings();
  if (!options().has("--allocators")) choose_usual_allocators(settings);
  const std::uint32_t most = settings.workers.back();
  if (std::ranges::count(settings.modes, Mode::kPool) > 0 && most > kMostPoolWorkers)
    throw Failure(kExitRefused, fmt::format("--workers: a pool has {} at most", kMostPoolWorkers));
  if (!options().has("--iterations"))
    settings.iterations = (most + kArticlesIterations - 1) / kArticlesIterations * kArticlesIterations;
  if (settings.iterations < most)
    throw Failure(kExitRefused, fmt::format("--iterations: {} are too few for {} workers", settings.iterations, most));
  if (jobs_of(settings).empty()) {
    throw Failure(kExitRefused,
                  "--mode: there is nothing to measure; isolation and handover run in threads only, memory, own-memory, "
                  "object, scoped, reserved and worker-heap not in a pool, and scoped under freehold alone");
  }
  return lab::run_command(options().files(), settings, run_experiment, page_parts());
}

// ---- JSON

namespace {

ordered_json sample_json(const std::optional<Report>& sample) {
  if (!sample) return nullptr;
  return members_json(
      *sample, std::tuple{std::pair{"elapsed_ns", &Report::elapsed_ns}, std::pair{"cpu_ns", &Report::cpu_ns},
                          std::pair{"peak_rss_bytes", &Report::peak_rss_bytes}, std::pair{"others", &Report::others}});
}

ordered_json series_json(const Results& results, const Series& series) {
  const Job& job = series.job;
  return {
      {"test", name_of(job.test)},
      {"mode", name_of(job.mode)},
      {"subject", job.subject},
      {"workers", job.workers},
      {"operations", job.operations()},
      {"operation", operation_name(job.test)},
      {"median_seconds", or_null(median_time(&series))},
      {"spread", spread_of(times_of(&series))},
      {"ns_per_operation", or_null(nanoseconds_per_operation(&series))},
      {"speed", or_null(speed(results, cell_of(job)))},
      {"peak_rss_bytes", or_null(peak_rss(&series))},
      {"failure", text_or_null(series.failure)},
      {"samples", list_json(series.samples, sample_json)},
  };
}

ordered_json claim_json(const Claim& claim) {
  ordered_json json{
      {"id", claim.id}, {"statement", claim.statement}, {"outcome", name_of(claim.outcome)}, {"figures", claim.figure}};
  json.update(ratio_json(claim));
  return json;
}

}  // namespace

ordered_json results_json(const Results& results) {
  const Verdict verdict = verdict_of(results);
  ordered_json settings = options().json(results.settings);
  settings["ideal_speed"] = list_json(results.settings.workers, [&](std::uint32_t workers) {
    return ideal_speed(results.settings.iterations, workers, results.machine.cpus);
  });
  ordered_json json = head_json("freehold-scale", results);
  json.update({{"settings", std::move(settings)},
               {"verdict", {{"paragraph", verdict.paragraph}, {"claims", list_json(verdict.claims, claim_json)}}},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, [&](const Series& series) { return series_json(results, series); })}});
  return json;
}

}  // namespace freehold::lab::scale
