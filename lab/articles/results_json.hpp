// SPDX-License-Identifier: MIT
// The findings as JSON: docs/articles.md names the fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/articles/findings.hpp"
#include "lab/experiment/result_files.hpp"

namespace freehold::cli::articles {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results, const Findings& findings);
// Writes JSON and page into `files`, and the table to standard output. Returns whether every measurement succeeded.
[[nodiscard]] bool write_results(const ResultFiles& files, const Results& results);

}  // namespace freehold::cli::articles
