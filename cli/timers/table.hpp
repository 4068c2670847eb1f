// The results for a terminal: what must be reached, then every figure.
#pragma once
#include <string>

#include "cli/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] std::string table_of(const Results& results);
// Names and sources of everything that can be measured.
[[nodiscard]] std::string list_of_contenders();

}  // namespace freehold::cli::timers
