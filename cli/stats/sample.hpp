// SPDX-License-Identifier: MIT
// The content of `freehold stats`: the figures of a process at one moment, each under one name for the table, JSON and
// Prometheus, and how fast counters grow between two moments.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/live/stats.hpp"

namespace freehold::cli::stats {

struct Sample {
  pid_t pid = 0;
  std::string command;  // its short name
  std::string date;     // UTC, ISO 8601
  double at_s = 0;      // time by a clock that never goes back
  freehold::live::LiveStats stats;
};

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
[[nodiscard]] std::vector<Figure> figures_of(const freehold::live::LiveStats& stats);

// Growth a second of a counter; never negative. None: no time has passed.
[[nodiscard]] std::optional<double> per_second(std::uint64_t now, std::uint64_t before, double seconds);

// Lines, each ending in a newline. `before`: an older sample of the same process, for rates; null: none.
[[nodiscard]] std::string table_of(const Sample& sample, const Sample* before);
// One line.
[[nodiscard]] std::string json_of(const Sample& sample, const Sample* before);
// The text format of Prometheus, version 0.0.4. Heaps and pools of one name are added up.
[[nodiscard]] std::string prometheus_of(const Sample& sample);

}  // namespace freehold::cli::stats
