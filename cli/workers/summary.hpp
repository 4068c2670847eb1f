// SPDX-License-Identifier: MIT
// The results of a run of tasks: one line for people, and JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/workers/run.hpp"

namespace freehold::cli::workers {

[[nodiscard]] std::string summary_of(const Results& results);
[[nodiscard]] nlohmann::ordered_json results_json(const Settings& settings, const Results& results);

}  // namespace freehold::cli::workers
