// SPDX-License-Identifier: MIT
// The advice as text for a terminal.
#pragma once
#include <string>

#include "cli/replay/advice.hpp"

namespace freehold::cli::replay {

[[nodiscard]] std::string table_of(const Advice& advice);

}  // namespace freehold::cli::replay
