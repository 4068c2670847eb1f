// SPDX-License-Identifier: MIT
// Every quantity that a verdict about memory uses, computed once, and the figures that its report shows. Comparisons with
// thresholds stand in verdict/memory_table.cpp, and nowhere else. docs/memory.md tells the reasoning at length:
//
//   1. What was resident over the recorded run is divided by its owners (memory_parts.hpp).
//   2. What malloc holds free is divided by experiment: what one arena, no caches and trimming save, if it is beyond chance.
//   3. Where the recorded run held another amount free than the others, theirs counts: chance decides what stays free.
//
// Pure. One thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/doctor/facts/fact.hpp"
#include "tools/doctor/facts/memory_experiment.hpp"

namespace freehold::doctor {

enum class MemoryFact : std::uint8_t {
  kDropped,
  kTrials,
  kRecordedDiffers,
  kLiveExceeds,
  kMoreSaved,
  kHeld,
  kOthersHeld,
  // The parts, in the order of MemoryPart.
  kLive,
  kRounding,
  kArenas,
  kCaches,
  kFreePages,
  kHoles,
  kMappings,
  kStacks,
  kFiles,
  kShared,
  kPageTables,
  kGreatest,
  kLead,
  kLargestBlock,
  kLeak,
  kDivided,
  kMaySave,
};
inline constexpr std::size_t kMemoryFacts = static_cast<std::size_t>(MemoryFact::kMaySave) + 1;
[[nodiscard]] const FactDescription& describe(MemoryFact fact) noexcept;
using MemoryFacts = FactValues<MemoryFact, kMemoryFacts>;

// The effect of a treatment.
struct MemoryFix {
  std::size_t cell = 0;
  Estimate saved;  // bytes, of the mean over the run's time; less than nothing: it takes more
  double peak_saved = 0;
  bool helps = false;  // beyond chance, and by enough to be worth it
  bool failed = false;
};

struct MemoryFigures {
  MemoryFacts facts;
  MemoryParts parts;             // over the time of the run
  bool is_divided = true;        // the free memory: holes are what no treatment gives back; else what was not tried, too
  MemoryParts at_peak;           // when the most was resident; divided in the same proportion
  double mean_bytes = 0;         // the sum of the parts
  Estimate run_mean, run_peak;   // bytes, of the program as it is: a run's mean and peak, in 95 of 100 cases within
  double leak_share = 0;         // of the live data: of sites that never free and grow all along
  std::vector<MemoryFix> fixes;  // in the order of the cells, the program as it is left out
  std::optional<std::size_t> best_fix;  // into fixes: what saves most; none: nothing does
};

// Pre: the first cell has a trial.
[[nodiscard]] MemoryFigures figures_of(const MemoryExperiment& experiment);

}  // namespace freehold::doctor
