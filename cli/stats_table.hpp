// SPDX-License-Identifier: MIT
// The engine's stats as a table: the memory it holds and why, then the size classes that were used.
#pragma once
#include <cstddef>
#include <cstring>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "freehold/alloc/stats.hpp"

namespace freehold::cli {

// Several lines, each ending in a newline. `system_huge_pages`: the system's mode, from huge_pages_mode(). Pre: as of
// stats_json.
[[nodiscard]] std::string stats_table(const alloc::Stats& stats, const std::string& system_huge_pages);
// A text of the stats, which ends where its array does if not before.
template <std::size_t N>
[[nodiscard]] std::string text_of(const char (&array)[N]) {
  return {array, ::strnlen(array, N)};
}

// The engine's stats as JSON, with the names of freehold/alloc/stats.hpp.

// Pre: stats.class_count <= kMaxStatsClasses. Texts that are not terminated are cut at their array's end.
[[nodiscard]] nlohmann::ordered_json stats_json(const alloc::Stats& stats);

}  // namespace freehold::cli
