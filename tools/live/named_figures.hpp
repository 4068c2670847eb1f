// SPDX-License-Identifier: MIT
// The figures of a process that runs under Freehold, each under one name, wherever they are shown or written.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/live/stats.hpp"

namespace freehold::live {

// One number of the whole process.
struct Figure {
  const char* name;   // "purged_bytes"
  const char* words;  // for the table
  const char* help;   // a sentence
  bool is_bytes;
  bool is_counter;  // it only grows
  std::uint64_t value;
};
// Those that the process's Freehold has, always in the same order: first levels, then counters.
[[nodiscard]] std::vector<Figure> figures_of(const LiveStats& stats);

}  // namespace freehold::live
