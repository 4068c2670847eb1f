// The results as JSON: everything that was measured, what was computed from it, and on what machine. docs/scale.md has the
// fields. The page is made from the same object, so that it cannot say anything else.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/scale/results.hpp"
#include "cli/scale/verdict.hpp"

namespace freehold::cli::scale {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results, const Verdict& verdict);

}  // namespace freehold::cli::scale
