// SPDX-License-Identifier: MIT
// The experiment of `freehold timers`: its settings, its jobs, and what is computed from the measurements: ratios within the
// sets, targets. The structures of a row, under every load, follow each other, so that a disturbance of the machine falls on
// all of them. docs/timers-compare.md has the fields of the JSON.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/claim.hpp"
#include "lab/experiment/sample_store.hpp"
#include "lab/experiment/series.hpp"
#include "lab/timers/job.hpp"
#include "tools/output/page.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab::timers {

struct Settings {
  std::vector<const Candidate*> structures;
  std::vector<Trial> tests{kTests.begin(), kTests.end()};
  std::vector<Load> loads{kLoads.begin(), kLoads.end()};
  std::uint32_t count = 100'000;                                       // timers of the tests in which they are handled
  std::uint32_t cancelled = 65'536;                                    // timers in the test cancel
  std::vector<std::uint32_t> live{1'000, 10'000, 100'000, 1'000'000};  // timers in the test rearm
  std::uint32_t shared = 100'000;                                      // timers in the test shared
  std::vector<std::uint32_t> users{1, 4};                              // threads of shared
  std::uint32_t background = 8;                                        // threads of a load
  std::uint32_t repeat = 3;
  std::uint32_t milliseconds = 100;  // CPU time of each user that a measurement takes, about
  bool large = false;                // ten million timers in rearm, too
  std::string freehold_library;      // for the structures that preload it
  SampleStore* store = nullptr;      // see measure_sets()
};

// In the order of the tables.
[[nodiscard]] std::vector<Row> rows_of(const Settings& settings);
// A structure that does not take part in a row has no job there.
[[nodiscard]] std::vector<Job> jobs_of(const Settings& settings);

using Series = JobSeries<Job, Report>;

struct Results : ExperimentResults<Settings, Job, Report> {
  using ExperimentResults::ExperimentResults;

  [[nodiscard]] const Series* find(const Row& row, Load load, std::string_view structure) const;
};

// Keeps the finished measurements when interrupted; goes on when a structure fails.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

// A part of a Cost: nanoseconds per operation, or events per thousand operations.
enum class Figure : std::uint8_t { kCpu, kWall, kSleeps, kWaits };

// In each set. Null: there is no series.
[[nodiscard]] Sets figures_of(const Series* series, Phase phase, Figure figure);
// The CPU time of one divided by that of another.
[[nodiscard]] Sets ratios_of(const Series* series, const Series* other, Phase phase);

// The ratios that the structures should reach, of those that were measured: reproduced is reached, refuted is missed.
[[nodiscard]] std::vector<Claim> targets_of(const Results& results);

// The article's figure: a phase on the program's heap and on a private one, in milliseconds of CPU time for so many timers,
// in a fresh process.
inline constexpr double kArticlesTimers = 100'000;
struct Moved {
  std::string_view before, after;  // structures
  Trial test;
  Phase phase;
  Range before_ms, after_ms;
};
// The article's queue and its wheel, as far as they were measured.
[[nodiscard]] std::vector<Moved> moved_of(const Results& results);
// Sentences about spread, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);

[[nodiscard]] PageParts page_parts();
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
[[nodiscard]] std::string table_of(const Results& results);
// The subcommand: its options, and its action after the parsing, which returns the exit code.
void add_options(Command& command);
[[nodiscard]] int run_command();

}  // namespace freehold::lab::timers
