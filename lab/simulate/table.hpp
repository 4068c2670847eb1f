// SPDX-License-Identifier: MIT
// The results for a terminal: coherence misses and lock hand-overs per pair, by cores, and the places of the misses.
#pragma once
#include <string>

#include "lab/simulate/simulation.hpp"

namespace freehold::cli::simulate {

[[nodiscard]] std::string table_of(const Results& results);

}  // namespace freehold::cli::simulate
