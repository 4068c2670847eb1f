// SPDX-License-Identifier: MIT
// Advises which pool or heap an allocation site should use. Replays the site's trace through all of them, several times in
// turn, and compares the medians. Subtracts the cost of the replay itself (the baseline) before it forms ratios.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/replay/memories.hpp"
#include "freehold/doctor/analysis/site_trace.hpp"

namespace freehold::cli::replay {

struct Row {
  std::string name;
  Kind kind = Kind::kPool;
  double pair_ns = 0;         // CPUs' time for an allocation and a free, the baseline's included
  double spread = 0;          // (greatest − least) / median
  double resident_bytes = 0;  // that the process grew by
  std::string failure;        // a sentence; empty: none
};

struct SiteAdvice {
  std::string site;
  std::uint64_t bytes = 0;
  unsigned threads = 0;
  std::uint32_t blocks = 0, peak_live = 0;
  double cpu_share = 0;        // of the program's CPU time, now
  double program_pair_ns = 0;  // cost of a pair in the program
  std::vector<Row> rows;       // the fastest first; the baseline last
  std::string best;            // "malloc": nothing is worth a change
  double ratio = 1;            // its time to malloc's
  double gain = 0;             // share of the program's CPU time that it would save
  std::size_t capacity = 0;    // for the pool
  std::string sentence;
  std::string code;  // to paste; empty: nothing is to be changed
};

struct Advice {
  std::vector<SiteAdvice> sites;
  bool complete = true;  // false: ended early
};

struct ReplaySettings {
  unsigned repeat = 5;
};

// Ends early, with the sites that are complete, once `is_interrupted` says so. Pre: the traces have no fault; this process
// has one thread.
[[nodiscard]] Advice advice_of(const std::vector<freehold::doctor::SiteTrace>& traces, const ReplaySettings& settings,
                               const std::function<bool()>& is_interrupted);

// The lines to paste for the allocator `name` of makers(); empty for the mallocs, which need none.
[[nodiscard]] std::string code_for(const std::string& name, Kind kind, const std::string& site, std::uint64_t bytes,
                                   std::size_t capacity);

// The advice as text for a terminal.
[[nodiscard]] std::string table_of(const Advice& advice);

}  // namespace freehold::cli::replay
