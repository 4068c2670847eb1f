// The results as JSON: everything that was measured, what was computed from it, and on what machine. docs/pools.md has the
// fields. The page is made from the same object, so that it cannot say anything else.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/pools/results.hpp"

namespace freehold::cli::pools {

[[nodiscard]] nlohmann::ordered_json results_json(const Results& results);

}  // namespace freehold::cli::pools
