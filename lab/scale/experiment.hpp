// SPDX-License-Identifier: MIT
// The experiment of `freehold scale`: its settings, its jobs, and what is computed from the measurements. It first
// calibrates how many units of work fill the wished time, then measures set after set. Jobs that differ in the subject alone
// follow each other, so that a disturbance of the machine falls on all subjects. docs/scale.md has the fields of the JSON.
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment/claim.hpp"
#include "lab/experiment/sample_store.hpp"
#include "lab/experiment/series.hpp"
#include "lab/scale/job.hpp"
#include "tools/output/page.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupts.hpp"
#include "tools/support/library.hpp"

namespace freehold::lab::scale {

// The default; and the default with a pool of processes.
inline constexpr std::array kUsualWorkloads{Workload::kCompute, Workload::kAllocate,  Workload::kMixed,
                                            Workload::kMemory,  Workload::kIsolation, Workload::kHandover};
inline constexpr std::array kPoolWorkloads{Workload::kCompute, Workload::kAllocate, Workload::kLocked};

// An allocator, or the thread-local article's allocator over the system's (for its two tests only).
struct Subject {
  std::string name;
  std::string library;  // preloaded; empty: none
  Source source = Source::kMalloc;
};
// The allocators, then the thread-local article's three. Throws Failure if two have the same name.
[[nodiscard]] std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators);

struct Settings {
  std::vector<Subject> subjects;
  std::vector<std::uint32_t> workers{1, 2, 3, 4, 6};
  std::vector<Workload> tests{kUsualWorkloads.begin(), kUsualWorkloads.end()};
  std::vector<Mode> modes{Mode::kThreads, Mode::kProcesses};
  std::uint32_t iterations = 24;
  std::uint32_t repeat = 3;
  std::uint32_t milliseconds = 150;  // that one worker needs for a job, about
  bool one_cpu = false;              // all workers of a measurement share one CPU
  std::vector<std::string> notes;    // about the choice
  SampleStore* store = nullptr;      // see measure_sets()
};

// The numbers of workers that make sense for a test: pairs for the handover.
[[nodiscard]] std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test);
// In the order of the tables.
[[nodiscard]] std::vector<Job> jobs_of(const Settings& settings);

using Series = JobSeries<Job, Report>;

// One cell of the tables.
struct Cell {
  Workload test = Workload::kCompute;
  Mode mode = Mode::kThreads;
  std::string_view subject;
  std::uint32_t workers = 1;

  friend bool operator==(const Cell&, const Cell&) = default;
};
[[nodiscard]] inline Cell cell_of(const Job& job) { return {job.test, job.mode, job.subject, job.workers}; }

struct Results : ExperimentResults<Settings, Job, Report> {
  using ExperimentResults::ExperimentResults;
  std::vector<std::string> notes;

  [[nodiscard]] const Series* find(const Cell& cell) const {
    return find_if([&](const Job& job) { return cell_of(job) == cell; });
  }
};

// Keeps the finished measurements when interrupted; goes on when an allocator fails. Pre: settings have a subject, a test
// and a mode.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

// Seconds.
[[nodiscard]] Sets times_of(const Series* series);
[[nodiscard]] std::optional<double> median_time(const Series* series);
[[nodiscard]] std::optional<double> nanoseconds_per_operation(const Series* series);
[[nodiscard]] std::optional<std::uint64_t> peak_rss(const Series* series);
// The fewest workers of the same test, mode and subject: one, or one pair.
[[nodiscard]] const Series* base_of(const Results& results, const Cell& cell);
// How many times as fast as the base: from the medians; and in each set.
[[nodiscard]] std::optional<double> speed(const Results& results, const Cell& cell);
[[nodiscard]] Sets speeds_of(const Results& results, const Cell& cell);
// The best speed that `cpus` CPUs allow for these shares of the iterations.
[[nodiscard]] double ideal_speed(std::uint32_t iterations, std::uint32_t workers, unsigned cpus);

// ---- the verdict: for each finding of the scaling article, whether the figures of this machine reproduce it, refute it, or
// neither.
//
// Each finding is a ratio of two speeds in every set, with as many workers as have a CPU each. The control of the first two
// findings is the compute workload in the same mode. Its workers share nothing, so no workload could have scaled better on
// this machine at that moment.

// A workload scales like another if it reaches this much of the other's speed.
inline constexpr double kScales = 0.80;         // speed-up of the compute workload
inline constexpr double kLikeProcesses = 0.85;  // speed-up of the processes
// A pool pays off for a locked component from this many times the threads' speed on: the scaling article's gain.
inline constexpr double kUnlocks = 1.5;
struct Verdict {
  std::vector<Claim> claims;
  std::string paragraph;
};

[[nodiscard]] Verdict verdict_of(const Results& results);
// Sentences about shared CPUs, sets that differ, failures and interruption.
[[nodiscard]] std::vector<std::string> notes_of(const Results& results);

[[nodiscard]] PageParts page_parts();
[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
[[nodiscard]] std::string table_of(const Results& results);
// The subcommand: its options, and its action after the parsing, which returns the exit code.
void add_options(Command& command);
[[nodiscard]] int run_command();

}  // namespace freehold::lab::scale
