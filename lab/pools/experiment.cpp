// SPDX-License-Identifier: MIT
#include "lab/pools/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/experiment/assets.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/one_cpu.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"

namespace freehold::lab::pools {
namespace {

constexpr std::uint32_t kMostThreads = 256;

OptionTable<Settings>& options() {
  static OptionTable<Settings> table = [] {
    OptionTable<Settings> all;
    all.candidates<Candidate>("--pools", &Settings::pools, candidates, "pools",
                              [](const Candidate* pool) -> nlohmann::ordered_json {
                                return {{"name", pool->name},
                                        {"source", pool->source},
                                        {"kind", name_of(pool->kind)},
                                        {"distributed", pool->distributed}};
                              })
        .names("--tests", &Settings::tests, kTests)
        .names("--contexts", &Settings::contexts, kContexts, "state of the pool at the start")
        .number("--threads", &Settings::threads, 1, kMostThreads, "Number of threads")
        .number("--operations", &Settings::operations, 1, 100'000'000, "Acquires and releases of each thread")
        .number("--slot-bytes", &Settings::slot_bytes, 4, 1 << 16, "Size of a slot", "BYTES")
        .numbers("--crc-threads", &Settings::crc_threads, 2, kMostThreads, "Numbers of threads in the test crc")
        .numbers("--crc-pools", &Settings::crc_pools, 1, kMostThreads,
                 "Numbers of pools that share the slots in the test crc")
        .number("--crc-reads", &Settings::crc_reads, 1, 1000, "Buffers read for each buffer written in the test crc")
        .written("crc_bytes", &Settings::crc_bytes)
        .flag("--whole", &Settings::whole, "Every test does all of its operations, however long that takes")
        .written("whole", &Settings::whole)
        .flag("--one-cpu", &Settings::one_cpu, "All threads of a test share one CPU")
        .written("one_cpu", &Settings::one_cpu)
        .flag("--simulate", &Settings::simulate,
              "Count coherence misses on 1 to 256 simulated cores; measure only the --tests given")
        .measured("Time limit of a test; it then ends with fewer operations, unless --whole",
                  "Short run: one set, 100000 operations, 40 ms for each test", [](Settings& settings) {
                    settings.repeat = 1;
                    settings.milliseconds = 40;
                    settings.operations = 100'000;
                  });
    return all;
  }();
  return table;
}

std::uint32_t threads_of(const Settings& settings, Trial test) {
  if (is_single_threaded(test)) return 1;
  if (test == Trial::kRing) return std::max(2u, settings.threads / 2 * 2);
  return settings.threads;
}

Job job_of(const Settings& settings, const Row& row, const Candidate& pool, std::uint32_t shards, bool counted) {
  const bool crc = row.test == Trial::kCrc;
  return {.pool = &pool,
          .test = row.test,
          .context = row.context,
          .threads = row.threads,
          .operations = settings.operations,
          .slot_bytes = crc ? settings.crc_bytes : settings.slot_bytes,
          .milliseconds = settings.whole ? 0 : settings.milliseconds,
          .reads = crc ? settings.crc_reads : 1,
          .shards = shards,
          .counted = counted,
          .one_cpu = settings.one_cpu};
}

}  // namespace

PageParts page_parts() {
  return {.title = "Freehold: the pools",
          .brand = "Freehold · pools of fixed-size slots",
          .question = "Which pool is the fastest, and where?",
          .sections = assets::pools_html,
          .script = assets::pools_js};
}

std::string text_of(const Row& row) {
  if (row.test == Trial::kCrc) return fmt::format("crc, {} threads", row.threads);
  if (!has_contexts(row.test)) return std::string(name_of(row.test));
  return fmt::format("{}, {}", name_of(row.test), name_of(row.context));
}

std::vector<std::uint32_t> shards_of(const Settings& settings, const Row& row, const Candidate& candidate) {
  if (row.test == Trial::kCrc && candidate.distributed) return settings.crc_pools;
  return {0};
}

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<Row> rows;
  for (const Trial test : settings.tests) {
    if (test == Trial::kCrc) {
      for (const std::uint32_t threads : settings.crc_threads) rows.push_back({test, Context::kFresh, threads});
    } else if (has_contexts(test)) {
      for (const Context context : settings.contexts) rows.push_back({test, context, threads_of(settings, test)});
    } else {
      rows.push_back({test, Context::kFresh, threads_of(settings, test)});
    }
  }
  return rows;
}

std::vector<Job> jobs_of(const Settings& settings) {
  std::vector<Job> jobs;
  for (const Row& row : rows_of(settings)) {
    for (const Candidate* const pool : settings.pools) {
      if (!runs(*pool, row)) continue;
      for (const std::uint32_t shards : shards_of(settings, row, *pool)) {
        jobs.push_back(job_of(settings, row, *pool, shards, false));
        if (row.test == Trial::kCrc && pool->kind == Kind::kStrategy)
          jobs.push_back(job_of(settings, row, *pool, shards, true));
      }
    }
  }
  return jobs;
}

Report Job::run() const {
  if (one_cpu) stay_on_this_cpu();
  return pool->run(*this);
}
// Preparing a pool takes longer than the test itself, and a thread looks at the clock only between blocks of operations.
// Without a limit no operation takes 50 microseconds but of a pool that is stuck: article 2's slowest took 38.
std::chrono::seconds Job::limit() const {
  return std::chrono::seconds(60 + (milliseconds == 0 ? wished_operations() / 20'000 : 50 * milliseconds / 1000));
}
std::string Job::complaint(const Report& report) const {
  return report.correct == 1 ? "" : "two threads held the same slot";
}
std::string Job::name() const { return pool->name; }
std::string Job::text() const {
  return fmt::format("{}, {}{}{}", place(), name(), shards == 0 ? "" : fmt::format(" × {}", shards),
                     counted ? ", counted" : "");
}

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results(settings, jobs_of(settings));
  record_run(results, [&] {
    if (!measure_sets(settings.repeat, results.series, interrupts, progress, settings.store)) return false;
    if (settings.simulate) results.simulated = simulate(settings.pools, interrupts, progress);
    return !settings.simulate || interrupts.arrived() == 0;
  });
  return results;
}

void add_options(Command& command) { options().add_to(command, "docs/pools-compare.md explains the tests and the method."); }

int run_command() {
  if (const auto code = options().list()) return *code;
  Settings settings = options().settings();
  if (!options().has("--pools")) settings.pools = pointers_to(candidates());
  if (settings.simulate && !options().has("--tests")) settings.tests.clear();
  if (jobs_of(settings).empty() && !settings.simulate)
    throw Failure(kExitRefused,
                  "--pools: there is nothing to measure; the baseline runs only in tests of fresh pools without hand-over");
  return lab::run_command(options().files(), settings, run_experiment, page_parts());
}

// ---- JSON

namespace {
using nlohmann::ordered_json;

ordered_json row_json(const Row& row) {
  return {{"text", text_of(row)}, {"test", name_of(row.test)}, {"context", name_of(row.context)}, {"threads", row.threads}};
}

ordered_json sample_json(const std::optional<Report>& sample) {
  if (!sample) return nullptr;
  return members_json(
      *sample, std::tuple{std::pair{"elapsed_ns", &Report::elapsed_ns}, std::pair{"operations", &Report::operations},
                          std::pair{"failures", &Report::failures}, std::pair{"conflicts", &Report::conflicts},
                          std::pair{"scatter", &Report::scatter}, std::pair{"cpu_ns", &Report::cpu_ns},
                          std::pair{"peak_rss_bytes", &Report::peak_rss_bytes}, std::pair{"others", &Report::others}});
}

ordered_json series_json(const Series& series) {
  ordered_json json = row_json(series.job.row());
  json.update({{"pool", series.job.name()},
               {"shards", series.job.shards},
               {"counted", series.job.counted},
               {"ns", or_null(cost(&series))},
               {"spread", spread_of(costs_of(&series))},
               {"contention", or_null(contention(&series))},
               {"shortened", is_shortened(series)},
               {"failure", text_or_null(series.failure)},
               {"samples", list_json(series.samples, sample_json)}});
  return json;
}

ordered_json comparison_json(const Comparison& c) {
  ordered_json json = row_json(c.row);
  json.update({{"ours", c.ours},
               {"best", c.other},
               {"pool", c.name},
               {"ratio", c.ratio()},
               {"least_ratio", c.least},
               {"greatest_ratio", c.greatest}});
  return json;
}

ordered_json footprint_json(const Footprint& one) {
  return {{"pool", one.pool},
          {"bookkeeping_bytes", or_null(one.bookkeeping_bytes)},
          {"alike", or_null(one.alike)},
          {"mixed", or_null(one.mixed)}};
}

ordered_json simulated_json(const Results& results) {
  ordered_json series = list_json(results.simulated, [](const Simulated& one) -> ordered_json {
    return {{"pool", one.pool}, {"workload", one.workload}, {"quantum", one.quantum}, {"misses", one.misses}};
  });
  return {{"cores", kSimulatedCores}, {"series", std::move(series)}};
}

}  // namespace

ordered_json results_json(const Results& results) {
  ordered_json json = head_json("freehold-pools", results);
  json.update({{"settings", options().json(results.settings)},
               {"ours", kOurs},
               {"comparisons", list_json(comparisons(results), comparison_json)},
               {"footprints", list_json(footprints(results), footprint_json)},
               {"simulated", simulated_json(results)},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, series_json)}});
  return json;
}

}  // namespace freehold::lab::pools
