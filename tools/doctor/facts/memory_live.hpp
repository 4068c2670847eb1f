// SPDX-License-Identifier: MIT
// The live data of a program over time, out of the probe's recordings. It says how much of it there is at given moments, and
// what glibc takes for it beside the bytes that were asked for. It tells which blocks have mappings of their own, and which
// sites' blocks are never freed. All are estimates from samples; of blocks from kLargeBytes on none is missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tools/doctor/facts/call_sites.hpp"
#include "tools/doctor/facts/memory_snapshot.hpp"

namespace freehold::doctor {

struct LargeBlock {
  std::uint64_t begin = 0, end = 0;
};

// The live data of one process at one moment.
struct LiveData {
  std::uint32_t pid = 0;
  double bytes = 0;                // bytes of the blocks that lie among others, as the program asked for them
  double rounding_bytes = 0;       // bytes that glibc takes beside these, for headers and steps of sizes
  std::vector<LargeBlock> mapped;  // blocks with a mapping each, as glibc makes it for large ones
  double mapped_rounding = 0;      // bytes that these mappings have beyond what was asked for
};

// The addresses at which one recording saw blocks, at any time. A process that executes another program has several
// recordings, one after the other.
struct SeenBlocks {
  std::uint32_t pid = 0;
  std::vector<std::uint64_t> addresses;  // sorted ascending
  double began_s = -std::numeric_limits<double>::infinity(), ended_s = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool is_of(std::uint32_t process, double moment) const noexcept {
    return pid == process && began_s <= moment && moment < ended_s;
  }
};

struct LiveSite {
  Place place;
  double at_peak = 0;  // bytes that are live when the live bytes of the program are at their peak
  double in_mean = 0;  // mean bytes over the time of the moments
  double kept = 0;     // the part of in_mean from stacks of which nothing is ever freed
  double growing = 0;  // the part of `kept` from stacks that allocate from the beginning of the recording to its end

  [[nodiscard]] bool is_kept() const noexcept { return kept > in_mean / 2; }
  [[nodiscard]] bool grows() const noexcept { return growing > in_mean / 2; }
};

struct LiveHistory {
  std::vector<std::vector<LiveData>> at;  // for each moment, one of each process that was there
  std::vector<SeenBlocks> seen;
  std::vector<LiveSite> sites;  // sorted: the one with the most at the peak first
  double peak_bytes = 0;
  double end_bytes = 0;           // live bytes at the end of the recording, in the processes that were there
  double mean_bytes = 0;          // mean live bytes over the time of the moments
  double mean_largest_block = 0;  // mean size of the greatest single block over that time
  std::uint64_t dropped = 0;      // number of records that found no room: blocks are missing, or their ends
};

// Returns the bytes that glibc's malloc (64 bits) takes for a block of this size that lies among others: a header, and steps
// of 16 bytes.
[[nodiscard]] std::uint64_t glibc_chunk_bytes(std::uint64_t asked) noexcept;
// Says whether a block has a mapping for itself, by its address and size: behind a header of 16 bytes at the beginning of a
// page.
[[nodiscard]] bool is_mapped_by_glibc(std::uint64_t address, std::uint64_t bytes) noexcept;

// When each process was known to be there last, CLOCK_MONOTONIC; infinity: until the end. What it had not freed went with
// it.
[[nodiscard]] std::vector<double> ends_of(std::span<const Evidence> processes, std::span<const MemorySnapshot> snapshots);

// `moments`: ascending, CLOCK_MONOTONIC; `weights`: for how long each stands. `is_glibc`: the malloc that was recorded.
// `ends`: of the processes; empty: they were there until the end.
[[nodiscard]] LiveHistory live_history_of(std::span<const Evidence> processes, std::span<const double> moments,
                                          std::span<const double> weights, bool is_glibc, std::span<const double> ends = {});

}  // namespace freehold::doctor
