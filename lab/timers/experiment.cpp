// SPDX-License-Identifier: MIT
#include "lab/timers/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "lab/experiment/assets.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/options.hpp"
#include "lab/experiment/run.hpp"
#include "tools/support/library.hpp"

namespace freehold::lab::timers {
namespace {

constexpr std::uint32_t kMostTimers = 16'000'000;
constexpr std::uint32_t kLarge = 10'000'000;
constexpr std::uint32_t kMostThreads = 256;

void make_quick(Settings& settings) {
  settings.repeat = 1;
  settings.milliseconds = 10;
  settings.loads = {Load::kAlone, Load::kHeap};
  settings.count = settings.cancelled = settings.shared = 10'000;
  settings.live = {1'000, 100'000};
}

OptionTable<Settings>& options() {
  static OptionTable<Settings> table = [] {
    OptionTable<Settings> all;
    all.candidates<Candidate>("--timers", &Settings::structures, candidates, "structures",
                              [](const Candidate* one) -> nlohmann::ordered_json {
                                return {{"name", one->name}, {"source", one->source}, {"kind", name_of(one->kind)}};
                              })
        .as("structures")
        .names("--tests", &Settings::tests, kTests)
        .names("--loads", &Settings::loads, kLoads, "the work of other threads")
        .number("--count", &Settings::count, 1, kMostTimers,
                "Number of timers in all tests but rearm [100000; cancel: 65536]")
        .written("cancelled", &Settings::cancelled)
        .numbers("--live", &Settings::live, 1, kMostTimers, "Numbers of timers in the test rearm")
        .flag("--large", &Settings::large, "Run the test rearm with 10000000 timers, too")
        .written("shared", &Settings::shared)
        .numbers("--users", &Settings::users, 1, kMostThreads, "Numbers of threads in the test shared")
        .number("--background", &Settings::background, 0, kMostThreads, "Number of threads of a load; 0: no loads")
        .measured("CPU time of a measurement, about", "Short run: one set, 10000 timers, 10 ms for each test, no load busy",
                  make_quick);
    return all;
  }();
  return table;
}

}  // namespace

PageParts page_parts() {
  return {.title = "Freehold: the timers",
          .brand = "Freehold · timers",
          .question = "How much do timers cost, and which threads contend for them?",
          .sections = assets::timers_html,
          .script = assets::timers_js};
}

const std::vector<Phase>& phases_of(Trial test) {
  static const std::vector<Phase> life{Phase::kCreate, Phase::kSet, Phase::kHandle, Phase::kAll};
  // A structure may leave part of a cancellation for later; it does that part in the phase handle.
  static const std::vector<Phase> cancelled{Phase::kCreate, Phase::kSet, Phase::kCancel, Phase::kHandle, Phase::kAll};
  static const std::vector<Phase> rearmed{Phase::kRearm};
  return !is_life(test) ? rearmed : test == Trial::kCancel ? cancelled : life;
}

Cost& Cost::operator+=(const Cost& other) noexcept {
  operations += other.operations;
  cpu_ns += other.cpu_ns;
  wall_ns += other.wall_ns;
  sleeps += other.sleeps;
  waits += other.waits;
  return *this;
}

std::string text_of(const Row& row) {
  const std::string users =
      row.test == Trial::kShared ? fmt::format(", {} user{}", row.users, row.users == 1 ? "" : "s") : "";
  return fmt::format("{}, {}{}", name_of(row.test), row.timers, users);
}

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<Row> rows;
  for (const Trial test : settings.tests) {
    if (test == Trial::kRearm) {
      for (const std::uint32_t timers : settings.live) rows.push_back({test, timers, 1});
    } else if (test == Trial::kShared) {
      for (const std::uint32_t users : settings.users) rows.push_back({test, settings.shared, users});
    } else {
      rows.push_back({test, test == Trial::kCancel ? settings.cancelled : settings.count, 1});
    }
  }
  return rows;
}

std::vector<Job> jobs_of(const Settings& settings) {
  std::vector<Job> jobs;
  for (const Row& row : rows_of(settings)) {
    for (const Load load : settings.loads) {
      for (const Candidate* const structure : settings.structures) {
        if (!runs(*structure, row.test)) continue;
        jobs.push_back({.structure = structure,
                        .test = row.test,
                        .load = load,
                        .timers = row.timers,
                        .users = row.users,
                        .background = load == Load::kAlone ? 0 : settings.background,
                        .milliseconds = settings.milliseconds,
                        .library = structure->preloads_freehold ? settings.freehold_library : ""});
      }
    }
  }
  return jobs;
}

Report Job::run() const {
  if (!runs(*structure, test)) throw std::runtime_error("no such structure");
  Report report = (test == Trial::kShared ? structure->run_shared : structure->run)(*this);
  note_malloc_library(report.malloc_library);
  return report;
}
// A user ends by its own CPU time, of which the load's threads leave it a part; setting millions of timers up comes first.
std::chrono::seconds Job::limit() const {
  return std::chrono::seconds(60 + timers / 50'000 + std::uint64_t{milliseconds} * (users + background) / 1000);
}
std::string Job::complaint(const Report& report) const {
  std::string why = library.empty() ? "" : wrong_malloc(library, report.malloc_library);
  if (why.empty() && report.correct != 1) why = "the timers that fired are not the timers that were set";
  return why;
}
std::string Job::name() const { return structure->name; }
std::string Job::place() const { return fmt::format("{} ({})", text_of(row()), name_of(load)); }
std::string Job::text() const { return fmt::format("{}, {}, {}", text_of(row()), name(), name_of(load)); }

Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress) {
  Results results(settings, jobs_of(settings));
  record_run(results, [&] { return measure_sets(settings.repeat, results.series, interrupts, progress, settings.store); });
  return results;
}

void add_options(Command& command) {
  options().add_to(command, "docs/timers-compare.md explains the tests and the method.");
}

int run_command() {
  if (const auto code = options().list()) return *code;
  Settings settings = options().settings();
  if (!options().has("--timers")) settings.structures = pointers_to(candidates());
  if (options().has("--count")) settings.cancelled = settings.shared = settings.count;
  if (settings.large && std::ranges::count(settings.live, kLarge) == 0) settings.live.push_back(kLarge);
  std::ranges::sort(settings.live);
  if (settings.background == 0) std::erase_if(settings.loads, [](Load load) { return load != Load::kAlone; });
  const std::vector<Job> jobs = jobs_of(settings);
  if (jobs.empty())
    throw Failure(kExitRefused, "there is nothing to measure: see freehold timers --list and docs/timers-compare.md");
  if (std::ranges::any_of(jobs, [](const Job& job) { return job.structure->preloads_freehold; }))
    settings.freehold_library = find_freehold_library();
  return lab::run_command(options().files(), settings, run_experiment, page_parts());
}

// ---- JSON

namespace {
using nlohmann::ordered_json;

ordered_json sample_json(const std::optional<Report>& sample, Trial test) {
  if (!sample) return nullptr;
  ordered_json json{{"background_operations", sample->background_operations},
                    {"peak_rss_bytes", sample->peak_rss_bytes},
                    {"others", sample->others}};
  for (const Phase phase : phases_of(test)) {
    if (phase == Phase::kAll) continue;
    json[name_of(phase)] = members_json(sample->costs[static_cast<std::size_t>(phase)],
                                        std::tuple{std::pair{"operations", &Cost::operations},
                                                   std::pair{"cpu_ns", &Cost::cpu_ns}, std::pair{"wall_ns", &Cost::wall_ns},
                                                   std::pair{"sleeps", &Cost::sleeps}, std::pair{"waits", &Cost::waits}});
  }
  return json;
}

ordered_json phase_json(const Results& results, const Series& series, Phase phase) {
  const Job& job = series.job;
  const auto median = [&](Figure figure) { return or_null(median_of(figures_of(&series, phase, figure))); };
  const auto ratio = [&](const Series* other) { return or_null(median_of(ratios_of(&series, other, phase))); };
  return {{"phase", name_of(phase)},
          {"cpu_ns", median(Figure::kCpu)},
          {"wall_ns", median(Figure::kWall)},
          {"sleeps_per_thousand", median(Figure::kSleeps)},
          {"waits_per_thousand", median(Figure::kWaits)},
          {"spread", spread_of(figures_of(&series, phase, Figure::kCpu))},
          {"to_base", ratio(results.find(job.row(), job.load, kArticlesQueue))},
          {"to_alone", ratio(results.find(job.row(), Load::kAlone, job.name()))}};
}

ordered_json series_json(const Results& results, const Series& series) {
  const Job& job = series.job;
  return {{"text", text_of(job.row())},
          {"test", name_of(job.test)},
          {"timers", job.timers},
          {"users", job.users},
          {"load", name_of(job.load)},
          {"structure", job.name()},
          {"phases", list_json(phases_of(job.test), [&](Phase phase) { return phase_json(results, series, phase); })},
          {"failure", text_or_null(series.failure)},
          {"samples", list_json(series.samples, [&](const auto& sample) { return sample_json(sample, job.test); })}};
}

ordered_json target_json(const Claim& target) {
  ordered_json json{{"text", target.statement}, {"outcome", name_of(target.outcome)}};
  json.update(ratio_json(target));
  return json;
}

ordered_json moved_json(const Moved& moved) {
  const auto range = [](const Range& ms) {
    return ordered_json{{"median", ms.median}, {"least", ms.least}, {"greatest", ms.greatest}};
  };
  return {{"before", moved.before},
          {"after", moved.after},
          {"test", name_of(moved.test)},
          {"phase", name_of(moved.phase)},
          {"before_ms", range(moved.before_ms)},
          {"after_ms", range(moved.after_ms)}};
}

}  // namespace

ordered_json results_json(const Results& results) {
  ordered_json json = head_json("freehold-timers", results);
  json.update({{"settings", options().json(results.settings)},
               {"base", kArticlesQueue},
               {"targets", list_json(targets_of(results), target_json)},
               {"moved", list_json(moved_of(results), moved_json)},
               {"notes", notes_of(results)},
               {"series", list_json(results.series, [&](const Series& series) { return series_json(results, series); })}});
  return json;
}

}  // namespace freehold::lab::timers
