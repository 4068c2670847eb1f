// SPDX-License-Identifier: MIT
// The work of one allocation site, as steps that can be repeated: which thread allocates, which one frees, and in which
// order.
//
// A recording has samples, each of which stands for `weight` allocations. The trace has them all again: the sampled one and
// its copies, evenly over the time since the same thread's sample before it. Each copy lives as long as the sample did and
// is freed by the same thread. So rates are kept, and with rates and lifetimes the number of live blocks. If a site did more
// than fits, a part is cut out of its middle in time. Blocks that are alive when the cut begins are allocated first
// (`set_up`).
//
//   Invariants: blocks are numbered in the order of their beginnings; a block ends at most once, after it began; each step's
//               thread is below `threads`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "freehold/doctor/analysis/attribution.hpp"

namespace freehold::doctor {

struct TraceStep {
  std::uint32_t block = 0;
  std::uint16_t thread = 0;
  bool is_end = false;

  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

struct SiteTrace {
  std::string site;         // "parse(std::string const&) at parse.cpp:210"
  std::uint64_t bytes = 0;  // of each block
  unsigned threads = 0;
  std::uint32_t blocks = 0;
  std::uint32_t peak_live = 0;
  std::size_t set_up = 0;  // so many steps at the beginning are no part of what is timed
  std::vector<TraceStep> steps;
  double window_s = 0;   // of the program's time that the steps behind set_up took
  double cpu_share = 0;  // of the program's CPU time that went into allocating and freeing this site's blocks
  double pair_ns = 0;    // what an allocation and a free cost in the program
};

inline constexpr unsigned kMostTraceThreads = 64;  // further ones count as one of these

struct TraceLimits {
  std::size_t sites = 3;
  std::size_t steps = 2'000'000;   // of each trace, set-up included
  double least_time_share = 0.02;  // of the allocator's time, for a site to be worth it
};

// Of the hottest sites whose blocks are all of one size below kLargeBytes, of each in the process where it is hottest; fewer
// if there are no more. `attribution` is that of the same processes.
[[nodiscard]] std::vector<SiteTrace> site_traces_of(std::span<const Evidence> processes, const Attribution& attribution,
                                                    const TraceLimits& limits = {});

// Why `trace` breaks an invariant, in a sentence's end; empty: it does not. For traces that were read from a file.
[[nodiscard]] std::string fault_of(const SiteTrace& trace);

}  // namespace freehold::doctor
