// The results as JSON: everything that was measured, what was computed from it, and on what machine. docs/timers.md has the
// fields. The page is made from the same object, so that it cannot say anything else.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);

}  // namespace freehold::cli::timers
