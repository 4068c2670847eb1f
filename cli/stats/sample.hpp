// SPDX-License-Identifier: MIT
// The content of `freehold stats`: the figures of a process at one moment, for the table, JSON and Prometheus, and how fast
// counters grow between two moments.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/live/named_figures.hpp"

namespace freehold::cli::stats {

using live::Figure;
using live::figures_of;

struct Sample {
  pid_t pid = 0;
  std::string command;  // its short name
  std::string date;     // UTC, ISO 8601
  double at_s = 0;      // time by a clock that never goes back
  freehold::live::LiveStats stats;
};

// Growth a second of a counter; never negative. None: no time has passed.
[[nodiscard]] std::optional<double> per_second(std::uint64_t now, std::uint64_t before, double seconds);

// Lines, each ending in a newline. `before`: an older sample of the same process, for rates; null: none.
[[nodiscard]] std::string table_of(const Sample& sample, const Sample* before);
// One line.
[[nodiscard]] std::string json_of(const Sample& sample, const Sample* before);
// The text format of Prometheus, version 0.0.4. Heaps and pools of one name are added up.
[[nodiscard]] std::string prometheus_of(const Sample& sample);

}  // namespace freehold::cli::stats
