// SPDX-License-Identifier: MIT
#include "lab/pools/strategies_part.hpp"

template void freehold::lab::pools::fill_strategies<1>(StrategyTable& table);
