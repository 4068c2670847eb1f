// SPDX-License-Identifier: MIT
// The results as JSON. docs/simulate.md lists the fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/experiment/result_files.hpp"
#include "lab/simulate/simulation.hpp"

namespace freehold::cli::simulate {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
// Writes the JSON into `files`, and the table to standard output. Returns true: a simulation cannot fail.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

}  // namespace freehold::cli::simulate
