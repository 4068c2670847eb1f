// SPDX-License-Identifier: MIT
// The registry's strategies as candidates. Each strategy takes seconds to compile, because the compiler inlines it into
// every timed loop. So strategies_0.cpp, strategies_1.cpp … compile a part of them each, and a build with several CPUs
// does that at the same time.
#pragma once
#include <array>
#include <cstddef>

#include "lab/pools/job.hpp"
#include "lab/strategies/registry.hpp"

namespace freehold::lab::pools {

inline constexpr std::size_t kStrategyParts = 3;
// In the order of the registry.
using StrategyTable = std::array<Candidate, pool::Strategies::kCount>;

// Writes the places i of `table` with i % kStrategyParts == kPart.
template <std::size_t kPart>
void fill_strategies(StrategyTable& table);

}  // namespace freehold::lab::pools
