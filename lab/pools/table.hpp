// SPDX-License-Identifier: MIT
// The results for a terminal: our pool against the best of each row, lost rows first; then every figure.
#pragma once
#include <string>

#include "lab/pools/results.hpp"

namespace freehold::cli::pools {

[[nodiscard]] std::string table_of(const Results& results);

}  // namespace freehold::cli::pools
