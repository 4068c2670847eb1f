// SPDX-License-Identifier: MIT
// Runs the scaling experiment as planned: first calibrates how many units of work fill the wished time, then measures set
// after set. Keeps the finished measurements when interrupted; goes on when an allocator fails. Its results as JSON, of
// which docs/scale.md has the fields, as the page that is made of the same object, and as tables for a terminal.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/support/interrupts.hpp"
#include "cli/support/progress.hpp"
#include "lab/experiment/result_files.hpp"
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

}  // namespace freehold::cli::scale
