// SPDX-License-Identifier: MIT
// The results for a terminal: the targets, then every figure.
#pragma once
#include <string>

#include "lab/timers/results.hpp"

namespace freehold::cli::timers {

[[nodiscard]] std::string table_of(const Results& results);

}  // namespace freehold::cli::timers
