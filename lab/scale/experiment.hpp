// SPDX-License-Identifier: MIT
// Runs the scaling experiment as planned: first calibrates how many units of work fill the wished time, then measures set
// after set. Keeps the finished measurements when interrupted; goes on when an allocator fails. Its results as JSON, of
// which docs/scale.md has the fields, as the page that is made of the same object, and as tables for a terminal.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "freehold/process/task_word.hpp"
#include "lab/experiment/command.hpp"
#include "lab/experiment/measure.hpp"
#include "lab/scale/plan.hpp"
#include "lab/scale/results.hpp"
#include "lab/scale/verdict.hpp"

namespace freehold::cli::scale {

// Pre: settings have a subject, a test and a mode.
[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results, const Verdict& verdict);
// `results` is made by results_json().
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);
[[nodiscard]] std::string table_of(const Results& results, const Verdict& verdict);
// Writes JSON and page into `files`, and the table to standard output. Returns whether every measurement succeeded.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

// One measurement of `freehold scale`. The command calls measure(), which starts `freehold scale-worker TEST MODE SOURCE
// WORKERS ITERATIONS UNITS` in a fresh process, if wanted with a preloaded allocator; that calls worker_main(). The worker's
// command is not for people and not in the help.

// The work of one worker of the job.
[[nodiscard]] Body body_of(const Job& job);
// Does the job and sends the Report. `arguments` are the words behind kWorkerCommand. Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

// `library` is an absolute path, or empty for the system's allocator; the report is refused if malloc came from elsewhere.
// `milliseconds` is the time that the job should take; much longer is a time-out. Throws Failure if no process can be
// started.
[[nodiscard]] Measured<Report> measure(const Job& job, const std::string& library, std::uint32_t milliseconds,
                                       Interrupts& interrupts);

// The scaling article's other solution: N threads submit their iterations to the N worker processes of a ProcessPool, one
// task for each iteration. The workers are this executable again, as `freehold scale-pool-worker`, with the same preloaded
// allocator.
inline constexpr const char* kPoolWorkerCommand = "scale-pool-worker";
inline constexpr std::uint32_t kMostPoolWorkers = process::TaskWord::kMaxWorkers;

// The time runs from the first submission to the last result; all workers are up before. CPU time and peak memory are the
// sums over clients and workers. Throws std::exception if the pool or a task fails.
void run_in_pool(const Job& job, GroupReport& report);

int pool_worker_main();

}  // namespace freehold::cli::scale
