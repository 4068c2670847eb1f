// The findings as JSON: docs/articles.md names the fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/articles/findings.hpp"

namespace freehold::cli::articles {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results, const Findings& findings);

}  // namespace freehold::cli::articles
