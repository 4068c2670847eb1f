// SPDX-License-Identifier: MIT
// The engine's stats as JSON, with the names of freehold/alloc/stats.hpp.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "freehold/alloc/stats.hpp"

namespace freehold::cli {

// Pre: stats.class_count <= kMaxStatsClasses. Texts that are not terminated are cut at their array's end.
[[nodiscard]] nlohmann::ordered_json stats_json(const alloc::Stats& stats);

}  // namespace freehold::cli
