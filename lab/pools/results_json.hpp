// SPDX-License-Identifier: MIT
// The results as JSON: all measurements, the figures computed from them, and the machine. docs/pools-compare.md has the
// fields. The page is made from the same object, so that both agree.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/experiment/result_files.hpp"
#include "lab/pools/results.hpp"

namespace freehold::cli::pools {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);
// Writes JSON and page into `files`, and the table to standard output. Returns whether every measurement succeeded.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

}  // namespace freehold::cli::pools
