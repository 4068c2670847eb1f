// SPDX-License-Identifier: MIT
// Results of the articles' first three parts, made by hand: every figure is given by a function.
#pragma once
#include <algorithm>
#include <functional>
#include <string>

#include "lab/articles/experiment.hpp"
#include "tests/unit/lab/scale_support.hpp"

namespace freehold::lab::articles {

struct Figures {
  // Nanoseconds for a pair; of a hundred operations that are counted, those that met another.
  std::function<double(const std::string& pool, const pools::Job&)> pair = [](const auto&, const auto&) { return 10.0; };
  std::function<double(const std::string& pool, const pools::Job&)> conflicts = [](const auto&, const auto&) { return 1.0; };
  std::function<double(const std::string& pool, const pools::Job&)> scatter = [](const auto&, const auto&) { return 1.0; };
  // Nanoseconds of CPU for a timer in each phase; sleeps in a thousand.
  std::function<double(const std::string& structure, timers::Phase)> timer = [](const auto&, auto) { return 100.0; };
  std::function<double(const std::string& structure, timers::Load)> sleeps = [](const auto&, auto) { return 0.0; };
  // Milliseconds of the work of a job, elapsed and of CPU.
  std::function<double(const std::string& subject, const scale::Job&, bool one_cpu)> work = [](const auto&, const auto&,
                                                                                               bool) { return 60.0; };
};

inline pools::Results pools_with(const pools::Settings& settings, const Figures& figures) {
  constexpr std::uint64_t kOperations = 1'000'000;
  pools::Results results(settings, pools::jobs_of(settings));
  for (auto& [job, samples, failure] : results.series) {
    pools::Report sample;
    sample.operations = kOperations;
    sample.elapsed_ns = sample.cpu_ns = static_cast<std::uint64_t>(figures.pair(job.name(), job) * kOperations);
    sample.conflicts = static_cast<std::uint64_t>(figures.conflicts(job.name(), job) * kOperations / 100);
    sample.scatter = figures.scatter(job.name(), job);
    samples.assign(settings.repeat, sample);
  }
  return results;
}

inline timers::Results timers_with(const timers::Settings& settings, const Figures& figures) {
  constexpr std::uint64_t kOperations = 1'000'000;
  timers::Results results(settings, timers::jobs_of(settings));
  for (auto& [job, samples, failure] : results.series) {
    timers::Report sample;
    for (const timers::Phase phase : timers::phases_of(job.test)) {
      if (phase == timers::Phase::kAll) continue;
      sample.costs[static_cast<std::size_t>(phase)] = {
          .operations = kOperations,
          .cpu_ns = static_cast<std::uint64_t>(figures.timer(job.name(), phase) * kOperations * job.users),
          .wall_ns = kOperations,
          .sleeps = static_cast<std::uint64_t>(figures.sleeps(job.name(), job.load) * 1000),
          .waits = 0};
    }
    samples.assign(settings.repeat, sample);
  }
  return results;
}

inline scale::Results scale_with(const scale::Settings& settings, const Figures& figures, unsigned cpus) {
  scale::Results results(settings, scale::jobs_of(settings));
  results.machine.cpus = cpus;
  for (auto& [job, samples, failure] : results.series) {
    job.units = 10;
    const std::uint64_t at_once = settings.one_cpu ? 1 : std::min(job.workers, cpus);
    samples.assign(settings.repeat, scale::report_of(1e6 * figures.work(job.subject, job, settings.one_cpu), at_once));
  }
  return results;
}

// A quad-core machine's.
inline Results results_with(const Figures& figures, std::uint32_t repeat = 3) {
  Results results = plan_of({.articles = {1, 2, 3}, .repeat = repeat, .quick = false});
  results.machine.cpus = 4;
  results.machine.cpu_model = "a CPU";
  results.date = "2026-01-01T00:00:00Z";
  for (auto* part : {&results.crc, &results.padding, &results.crc_on_one_cpu, &results.handed, &results.several,
                     &results.locks, &results.fewer, &results.alone})
    *part = pools_with((*part)->settings, figures);
  results.timers = timers_with(results.timers->settings, figures);
  return results;
}

// Article 4's alone.
inline Results scaling_with(const Figures& figures, unsigned cpus) {
  Results results;
  results.choice = {.articles = {4}, .repeat = 3, .quick = false};
  results.machine.cpus = cpus;
  scale::Settings settings;
  settings.subjects = scale::subjects_of({{"system", ""}, {"freehold", "/lib/libfreehold.so"}});
  settings.tests.assign(scale::kWorkloads.begin(), scale::kWorkloads.end());
  settings.modes = {Mode::kThreads, Mode::kProcesses, Mode::kPool};
  settings.workers = {1, 2, 3, 4, 6};
  results.scaling = scale_with(settings, figures, cpus);
  settings.one_cpu = true;
  results.one_cpu = scale_with(settings, figures, cpus);
  settings.one_cpu = false;
  settings.modes = {Mode::kProcesses, Mode::kPool, Mode::kSpawn};
  settings.tests = {scale::Workload::kAllocate};
  settings.workers = {1, 2, 4, 8};
  results.pooled = scale_with(settings, figures, cpus);
  return results;
}

// Article 5's alone.
inline Results blocks_with(const Figures& figures, unsigned cpus) {
  Results results;
  results.choice = {.articles = {5}, .repeat = 3, .quick = false};
  results.machine.cpus = cpus;
  scale::Settings settings;
  settings.subjects = scale::subjects_of({{"system", ""}, {"freehold", "/lib/libfreehold.so"}});
  settings.tests = {scale::Workload::kCompute, scale::Workload::kIsolation, scale::Workload::kHandover};
  settings.modes = {Mode::kThreads};
  settings.workers = {1, 2, 4};
  results.blocks = scale_with(settings, figures, cpus);
  settings.one_cpu = true;
  results.blocks_one_cpu = scale_with(settings, figures, cpus);
  return results;
}

// Returns figures as the articles have them.
inline Figures as_in_the_articles() {
  Figures figures;
  figures.pair = [](const std::string& pool, const pools::Job& job) {
    const bool many = job.threads == 32;
    if (job.test == pools::Trial::kCrc && job.one_cpu) return pool == "baseline" ? 50.0 : 55.0;
    if (pool == "array-of-pools-packed") return 150.0;
    if (job.test == pools::Trial::kCrc)
      return pool == "baseline" ? 50.0 : job.shards >= 4 ? 100.0 : job.shards == 2 ? 300.0 : many ? 1000.0 : 550.0;
    if (pool.starts_with("stacks-by-")) return 20.0;
    if (pool == "locked-flags-spin") return 60.0;
    if (pool == "tagged-stack") return 60.0;
    const double polluted = job.context == pools::Context::kPolluted ? 1.3 : 1;
    if (job.context == pools::Context::kHalfUsed && job.threads == 1 && !pool.starts_with("locked-bitmap-tree") &&
        pool.ends_with("-unlocked"))
      return 5.0;
    if (pool == "best" || pool == "single-thread") return 1.0;
    if (pool == "system-new") return job.test == pools::Trial::kLong ? 2500.0 : polluted > 1 ? 143.0 : 80.0;
    if (pool == "lock-free-flags") return (job.threads == 1 ? 8 : 11) * polluted;
    return pool.starts_with("locked-flags")  ? (job.threads == 1 ? 2.7 : 30.0)
           : pool.starts_with("locked-bits") ? (job.threads == 1 ? 3.0 : 31.0)
                                             : (job.threads == 1 ? 7.0 : 41.0);
  };
  figures.conflicts = [](const std::string& pool, const pools::Job& job) {
    return job.one_cpu ? 0.1 : (pool == "stacks-by-thread" ? 1.3 : 1.0) * (job.shards == 1 ? 20 : 2);
  };
  figures.scatter = [](const std::string& pool, const pools::Job& job) {
    return job.test == pools::Trial::kMixed && !pool.starts_with("locked-bitmap-tree") ? 3.5 : 1.0;
  };
  figures.timer = [](const std::string& structure, timers::Phase phase) {
    if (structure == "queue" || structure == "wheel") return 100.0;
    if (structure == timers::kArticlesPool) return 900.0;
    const double gain = structure.starts_with("article-wheel") ? 40 : phase == timers::Phase::kHandle ? 10 : 200;
    return structure.ends_with("private") || structure == timers::kArticlesScopes ? 500.0
           : structure.find("containers") != structure.npos                       ? 500.0 + gain / 2
                                                                                  : 500.0 + gain;
  };
  figures.sleeps = [](const std::string& structure, timers::Load load) {
    return load == timers::Load::kHeap && !structure.ends_with("private") ? 30.0 : 0.0;
  };
  figures.work = [](const std::string& subject, const scale::Job& job, bool one_cpu) {
    const bool shares_malloc = job.mode == Mode::kThreads && subject == "system";
    const double n = job.workers;
    if (job.test >= scale::Workload::kObject && job.test <= scale::Workload::kWorkerHeap) return 20 / std::min(n, 4.0);
    if (job.mode == Mode::kSpawn) return 120 / std::min(n, 4.0);
    if (job.test == scale::Workload::kLocked && job.mode == Mode::kThreads) return 60.0;
    if (job.test >= scale::Workload::kIsolation) {
      const bool standard = subject == "system";
      if (job.test == scale::Workload::kHandover) return standard ? 76.0 : subject == "owner-article" ? 60.0 : 50.0;
      return one_cpu ? (standard ? 150.0 : 60.0) : standard ? (n == 1 ? 60 : 400 * n) : 60 / std::min(n, 4.0);
    }
    if (one_cpu && job.test == scale::Workload::kOwnMemory) return n == 1 ? 60.0 : 90.0;
    if (one_cpu && job.test > scale::Workload::kMixed) return 60.0;
    if (one_cpu) return job.test != scale::Workload::kCompute && shares_malloc ? 60 * (1 + 0.01 * (n * n - 1)) : 60.0;
    if (job.test == scale::Workload::kAllocate && shares_malloc)
      return n == 6 ? 90.0 : n == 1 ? 60.0 : n == 2 ? 80.0 : 30 * n;
    if (job.test == scale::Workload::kMixed && shares_malloc) return n == 1 ? 60.0 : n == 2 ? 40.0 : 80.0;
    return 60 / std::min(n, 4.0);
  };
  return figures;
}

}  // namespace freehold::lab::articles
