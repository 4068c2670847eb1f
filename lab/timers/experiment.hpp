// SPDX-License-Identifier: MIT
// Runs the timers' experiment as planned. Keeps the finished measurements when interrupted; goes on when a structure fails.
// Its results as JSON, of which docs/timers.md has the fields, as the page that is made of the same object, and as tables.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/support/interrupts.hpp"
#include "lab/experiment/command.hpp"
#include "lab/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] Results run_experiment(const Settings& settings, Interrupts& interrupts, Progress& progress);
// In the process of one measurement: does the job and sends the Report. `arguments` are the words behind kWorkerCommand.
// Returns the exit code.
int worker_main(const std::vector<std::string>& arguments);

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
// `results` is made by results_json().
[[nodiscard]] std::string page_of(const nlohmann::ordered_json& results);
[[nodiscard]] std::string table_of(const Results& results);
// Writes JSON and page into `files`, and the table to standard output. Returns whether every measurement succeeded.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

}  // namespace freehold::cli::timers
