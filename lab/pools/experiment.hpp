// SPDX-License-Identifier: MIT
// The experiment of `freehold pools`: its settings, its jobs, and what is computed from the measurements. The pools of a row
// follow each other, so that a disturbance of the machine falls on all of them. docs/pools-compare.md has the fields of the
// JSON. The tables for a terminal show our pool against the best of each row, lost rows first; then every figure.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/sample_store.hpp"
#include "lab/experiment/series.hpp"
#include "lab/pools/job.hpp"
#include "lab/pools/simulate.hpp"
#include "tools/output/page.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::lab::pools {

struct Settings {
  std::vector<const Candidate*> pools;
  std::vector<Trial> tests{kTests.begin(), kTests.end()};
  std::vector<Context> contexts{kContexts.begin(), kContexts.end()};
  std::uint32_t threads = 8;
  std::uint64_t operations = 1'000'000;  // operations of each thread
  std::uint32_t slot_bytes = 12;
  std::uint32_t repeat = 5;
  std::uint32_t milliseconds = 150;  // time limit of a measurement, about
  bool whole = false;                // no time limit
  bool one_cpu = false;              // all threads of a measurement share one CPU
  // Article 1's experiment.
  std::vector<std::uint32_t> crc_threads{8, 16, 32};
  std::vector<std::uint32_t> crc_pools{1, 2, 4, 8, 16, 32};
  std::uint32_t crc_bytes = 64;
  std::uint32_t crc_reads = 4;   // for each write; a writer does `operations`, a reader this many times as many
  bool simulate = false;         // count coherence misses on simulated cores, too
  SampleStore* store = nullptr;  // see measure_sets()
};

// In the order of the tables.
[[nodiscard]] std::vector<Row> rows_of(const Settings& settings);
// The numbers of pools that a candidate distributes its slots over in a row; 0: the default.
[[nodiscard]] std::vector<std::uint32_t> shards_of(const Settings& settings, const Row& row, const Candidate& candidate);
// A candidate that does not take part in a row has no job there.
[[nodiscard]] std::vector<Job> jobs_of(const Settings& settings);

using Series = JobSeries<Job, Report>;

struct Results : ExperimentResults<Settings, Job, Report> {
  using ExperimentResults::ExperimentResults;
  std::vector<Simulated> simulated;  // with --simulate

  [[nodiscard]] const Series* find(const Row& row, std::string_view pool, std::uint32_t shards = 0,
                                   bool counted = false) const;
};

// Keeps the finished measurements when interrupted; goes on when a pool fails.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

// Nanoseconds per acquire/release pair over all threads.
[[nodiscard]] Sets costs_of(const Series* series);
[[nodiscard]] std::optional<double> cost(const Series* series);
// Conflicts in an iteration, which is an acquire and a release, as article 1 divides: the median.
[[nodiscard]] std::optional<double> contention(const Series* series);
// The memory that a pool takes beside its slots, and how far it scatters those that are live (see Report::scatter).
struct Footprint {
  std::string pool;
  std::optional<double> bookkeeping_bytes, alike, mixed;
};
[[nodiscard]] std::vector<Footprint> footprints(const Results& results);
// True if the sets had fewer operations than wished, because they took too long.
[[nodiscard]] bool is_shortened(const Series& series);

// Our pool in a row; null: it was not measured.
[[nodiscard]] const Candidate* ours_in(const Results& results, const Row& row);
// A row in which our pool and another one were measured. The baseline is no pool.
struct Comparison {
  Row row;
  double ours = 0;   // nanoseconds
  double other = 0;  // time of the best of the others
  std::string name;  // its name
  double least = 0;  // ratio ours / other in the sets: least and greatest
  double greatest = 0;

  [[nodiscard]] double ratio() const { return ours / other; }
};
// Lost rows first.
[[nodiscard]] std::vector<Comparison> comparisons(const Results& results);
// The best pool of a row; null if nothing was measured.
[[nodiscard]] const Series* best_of(const Results& results, const Row& row, std::string_view except = {});
// Sentences about shortened tests, spread, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);

[[nodiscard]] PageParts page_parts();
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
[[nodiscard]] std::string table_of(const Results& results);
// The subcommand: its options, and its action after the parsing, which returns the exit code.
void add_options(Command& command);
[[nodiscard]] int run_command();

}  // namespace freehold::lab::pools
