// SPDX-License-Identifier: MIT
// Runs of a program under treatments, and one run that was recorded: an experiment that tells why it takes so much memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/memory_parts.hpp"

namespace freehold::doctor {

// The treatments that are tried. Each is a question.
enum class MemoryTreatment : std::uint8_t {
  kNone,      // the program as it is
  kOneArena,  // would one arena hold it?
  kNoCaches,  // would it be given back without caches of threads?
  kTrimmed,   // would malloc give it back, if it were asked to all the time?
  kFreehold,
  kPeer,  // another library or setting
};

struct MemoryVariant {
  MemoryTreatment treatment = MemoryTreatment::kNone;
  Variant how;
};

// One run: resident bytes with page tables, and files in tmpfs that it had and did not map.
struct MemoryTrial {
  double mean_bytes = 0;  // over the time of the run
  double peak_bytes = 0;
  double end_bytes = 0;    // when it was seen last
  double files_bytes = 0;  // in tmpfs, that it wrote and did not map, over the time: beside these
  double heap_bytes = 0;   // of these: in glibc's heap and arenas, over the time
  double wall_s = 0;
};

struct MemoryCell {
  MemoryVariant variant;
  std::vector<MemoryTrial> trials;  // that ended well
  std::string failure;              // how it ended otherwise, in words; empty: never
};

// The run that was recorded.
struct MemoryRecord {
  MemoryParts mean, at_peak;  // of what was resident; free bytes not divided yet
  double files_at_peak = 0;   // in tmpfs, beside what was resident then
  double heap_bytes = 0;      // as those of a MemoryTrial
  double mean_live = 0, peak_live = 0, end_live = 0;
  double mean_largest_block = 0;
  std::uint64_t dropped = 0;  // records that found no room
  std::vector<LiveSite> sites;
  struct Point {
    double at_s = 0, live_bytes = 0, resident_bytes = 0;
  };
  std::vector<Point> history;
};

struct MemoryExperiment {
  std::vector<MemoryCell> cells;  // the program as it is first
  std::optional<MemoryRecord> record;
  bool is_glibc = true;  // the malloc of the program as it is
  bool complete = true;
};

// Mean of a run, the peak, and the last: from its snapshots. None: nothing was seen.
[[nodiscard]] std::optional<MemoryTrial> trial_of(const std::vector<MemorySnapshot>& snapshots, bool is_glibc);
// Returns what a recorded run held, by what was recorded of it. `snapshots` is not empty.
[[nodiscard]] MemoryRecord record_of(const std::vector<MemorySnapshot>& snapshots, const LiveHistory& live, bool is_glibc);

}  // namespace freehold::doctor
