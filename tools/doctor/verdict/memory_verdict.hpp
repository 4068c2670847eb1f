// SPDX-License-Identifier: MIT
// Why a program takes so much memory: from the parts of what it holds, and from what it holds under other treatments, to a
// cause. Decisions and figures only; the words are the command's. docs/memory.md tells the reasoning at length:
//
//   1. What was resident over the recorded run is divided by its owners (memory_parts.hpp).
//   2. What malloc holds free is divided by experiment: what one arena, no caches and trimming save, if it is beyond chance.
//   3. The cause is the greatest part, if it is great enough; live data is never the allocator's doing.
//   4. Where the recorded run held another amount free than the others, theirs counts: chance decides what stays free.
//   5. Where the measures do not agree, there is no cause.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/memory_parts.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

enum class MemoryCause : std::uint8_t {
  kLittle,      // it takes little: there is nothing to explain
  kLiveData,    // what it has not freed
  kLeak,        // live data of sites that allocate all the time and never free
  kOneBlock,    // live data, most of it in one block
  kRounding,    // blocks so small that headers and steps between sizes take more than they do
  kArenas,      // what several arenas hold free
  kCaches,      // what caches of threads hold free
  kFreePages,   // whole free pages that malloc keeps
  kHoles,       // free memory between live blocks
  kMappings,    // memory that the program maps itself
  kStacks,      // stacks of threads
  kFiles,       // code and mapped files
  kShared,      // files in tmpfs and shared mappings
  kPageTables,  // for memory that is mapped far apart
  kMixed,       // none of them alone
  kUndecided,   // the measures do not agree
};
inline constexpr std::size_t kMemoryCauses = 16;
[[nodiscard]] std::string_view name_of(MemoryCause cause) noexcept;  // "free-pages"
// Returns whether another malloc, or another setting of it, is what the cause asks for.
[[nodiscard]] bool blames_allocator(MemoryCause cause) noexcept;

// Why there is no cause.
enum class MemoryDoubt : std::uint8_t {
  kNone,
  kNothingRecorded,   // live data is not known
  kTooFewTrials,      // chance cannot be told
  kRecordingIsCut,    // records found no room: live data may be missing, or what was freed
  kRecordingDiffers,  // the recorded run held another amount than the others, at its peak, too
  kLiveExceeds,       // more live data than memory
  kMoreSaved,         // a treatment saved more than malloc is said to hold
  kNotDivided,        // most is free in glibc's malloc, and not all treatments that say where were tried
  kMaySave,           // the same, and one of these may save most of it, but its runs differ too much to say so
};
[[nodiscard]] std::string_view name_of(MemoryDoubt doubt) noexcept;  // "recording-differs"

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

// The effect of a treatment.
struct MemoryFix {
  std::size_t cell = 0;
  Estimate saved;  // bytes, of the mean over the run's time; less than nothing: it takes more
  double peak_saved = 0;
  bool helps = false;  // beyond chance, and by enough to be worth it
  bool failed = false;
};

struct MemoryVerdict {
  MemoryCause cause = MemoryCause::kUndecided;
  MemoryDoubt doubt = MemoryDoubt::kNone;
  MemoryParts parts;             // over the time of the run
  bool is_divided = true;        // the free memory: holes are what no treatment gives back; else what was not tried, too
  MemoryParts at_peak;           // when the most was resident; divided in the same proportion
  double mean_bytes = 0;         // the sum of the parts
  Estimate run_mean, run_peak;   // bytes, of the program as it is: a run's mean and peak, in 95 of 100 cases within
  double leak_share = 0;         // of the live data: of sites that never free and grow all along
  std::vector<MemoryFix> fixes;  // in the order of the cells, the program as it is left out
  std::optional<std::size_t> best_fix;  // into fixes: what saves most; none: nothing does
};

// Less than this is not worth a question: a program with the C++ library and one thread takes 3 to 4 MiB.
inline constexpr double kLittleBytes = 8.0 * (1 << 20);

// Mean of a run, the peak, and the last: from its snapshots. None: nothing was seen.
[[nodiscard]] std::optional<MemoryTrial> trial_of(const std::vector<MemorySnapshot>& snapshots, bool is_glibc);
// Returns what a recorded run held, by what was recorded of it. `snapshots` is not empty.
[[nodiscard]] MemoryRecord record_of(const std::vector<MemorySnapshot>& snapshots, const LiveHistory& live, bool is_glibc);

// Pre: the first cell has a trial.
[[nodiscard]] MemoryVerdict verdict_of(const MemoryExperiment& experiment);

}  // namespace freehold::doctor
