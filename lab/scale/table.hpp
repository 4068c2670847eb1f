// SPDX-License-Identifier: MIT
// The results for a terminal: a table and a small chart for threads and for processes, one table for the two tests of the
// thread-local article, and the verdict.
#pragma once
#include <string>

#include "lab/scale/results.hpp"
#include "lab/scale/verdict.hpp"

namespace freehold::cli::scale {

[[nodiscard]] std::string table_of(const Results& results, const Verdict& verdict);

}  // namespace freehold::cli::scale
