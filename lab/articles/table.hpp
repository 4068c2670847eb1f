// SPDX-License-Identifier: MIT
// The claims and their tables, for terminals.
#pragma once
#include <string>

#include "lab/articles/findings.hpp"

namespace freehold::cli::articles {

[[nodiscard]] std::string table_of(const Results& results, const Findings& findings);

}  // namespace freehold::cli::articles
