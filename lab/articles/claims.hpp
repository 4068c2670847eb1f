// SPDX-License-Identifier: MIT
// The claims of each article, and the tables behind them.
#pragma once
#include "lab/articles/findings.hpp"

namespace freehold::cli::articles {

// Articles 1 and 2. Pre: the parts of the results that they need are there.
void find_distributed_pools(const Results& results, Findings& findings);
void find_pools_compared(const Results& results, Findings& findings);
// Article 3.
void find_timers(const Results& results, Findings& findings);
// Articles 4 and 5.
void find_scaling(const Results& results, Findings& findings);
void find_thread_local(const Results& results, Findings& findings);

}  // namespace freehold::cli::articles
