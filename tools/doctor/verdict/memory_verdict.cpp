// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/memory_verdict.hpp"

#include <utility>

namespace freehold::doctor {
namespace {

constexpr MemoryCriterion at_least(MemoryFact fact, MemoryLimit limit) { return {fact, Is::kAtLeast, limit}; }
constexpr MemoryCriterion below(MemoryFact fact, MemoryLimit limit) { return {fact, Is::kBelow, limit}; }

}  // namespace

// The last two figures of each are written by tests/doctor/margins.py.
MemoryThresholds& memory_thresholds() noexcept {
  static MemoryThresholds all = by_limit<MemoryLimit, kMemoryLimits>({
      {MemoryLimit::kWhole, {1, "all of it was recorded and tried", 0, 1}},
      {MemoryLimit::kTwice, {2, "of one run chance is not known", 0, 9}},
      {MemoryLimit::kTolerance, {1, "two measures of one thing agree", 0, 0}},
      {MemoryLimit::kLittle, {8, "a program with the C++ library and one thread takes 3 to 4 MiB", 0, 0}},
      {MemoryLimit::kMain, {0.5, "a part that is the cause whatever the others are", 1, 0}},
      {MemoryLimit::kGreat, {0.35, "or this much, if the next one is well behind", 0, 0}},
      {MemoryLimit::kAhead, {1.5, "well ahead of the next part", 0, 0}},
      {MemoryLimit::kMostOfLive, {0.5, "one block, or leaks, are most of the live data", 0, 0}},
      {MemoryLimit::kHalf, {0.5, "half of the holes may be given back by a treatment", 0, 0}},
  });
  return all;
}

const std::vector<MemoryRow>& memory_rows() {
  static const std::vector<MemoryRow> kRows{
      {.cause = MemoryCause::kLittle,
       .needs = {{below(MemoryFact::kHeld, MemoryLimit::kLittle)}, {below(MemoryFact::kOthersHeld, MemoryLimit::kLittle)}},
       .needs_agreement = false},
      {.cause = MemoryCause::kOneBlock,
       .part = MemoryFact::kLive,
       .needs = {{at_least(MemoryFact::kLargestBlock, MemoryLimit::kMostOfLive)}}},
      {.cause = MemoryCause::kLeak,
       .part = MemoryFact::kLive,
       .needs = {{at_least(MemoryFact::kLeak, MemoryLimit::kMostOfLive)}}},
      {.cause = MemoryCause::kLiveData, .part = MemoryFact::kLive},
      {.cause = MemoryCause::kRounding, .part = MemoryFact::kRounding},
      {.cause = MemoryCause::kArenas, .part = MemoryFact::kArenas},
      {.cause = MemoryCause::kCaches, .part = MemoryFact::kCaches},
      {.cause = MemoryCause::kFreePages, .part = MemoryFact::kFreePages},
      {.cause = MemoryCause::kHoles,
       .part = MemoryFact::kHoles,
       .needs = {{at_least(MemoryFact::kDivided, MemoryLimit::kWhole)}, {below(MemoryFact::kMaySave, MemoryLimit::kHalf)}}},
      {.cause = MemoryCause::kMappings, .part = MemoryFact::kMappings},
      {.cause = MemoryCause::kStacks, .part = MemoryFact::kStacks},
      {.cause = MemoryCause::kFiles, .part = MemoryFact::kFiles},
      {.cause = MemoryCause::kShared, .part = MemoryFact::kShared},
      {.cause = MemoryCause::kPageTables, .part = MemoryFact::kPageTables},
      {.cause = MemoryCause::kMixed,
       .needs = {{below(MemoryFact::kGreatest, MemoryLimit::kMain)},
                 {below(MemoryFact::kGreatest, MemoryLimit::kGreat), below(MemoryFact::kLead, MemoryLimit::kAhead)}}},
  };
  return kRows;
}

std::vector<MemoryAnyOf> needs_of_part(MemoryFact part) {
  return {{at_least(part, MemoryLimit::kGreat)},
          {at_least(part, MemoryLimit::kMain), at_least(MemoryFact::kLead, MemoryLimit::kAhead)}};
}

const std::vector<MemoryAnyOf>& needs_of_agreement() {
  static const std::vector<MemoryAnyOf> kNeeds{{below(MemoryFact::kDropped, MemoryLimit::kWhole)},
                                               {at_least(MemoryFact::kTrials, MemoryLimit::kTwice)},
                                               {below(MemoryFact::kRecordedDiffers, MemoryLimit::kTolerance)},
                                               {below(MemoryFact::kLiveExceeds, MemoryLimit::kTolerance)},
                                               {below(MemoryFact::kMoreSaved, MemoryLimit::kTolerance)}};
  return kNeeds;
}

MemoryDecision decide(const MemoryFacts& facts) {
  std::optional<Standing<MemoryCriterion>> nearest;
  for (const MemoryRow& row : memory_rows()) {
    Standing<MemoryCriterion> standing;
    if (row.needs_agreement)
      for (const MemoryAnyOf& any : needs_of_agreement()) standing.need(any, facts);
    if (row.part)
      for (const MemoryAnyOf& any : needs_of_part(*row.part)) standing.need(any, facts);
    for (const MemoryAnyOf& any : row.needs) standing.need(any, facts);
    if (standing.is_sure()) return {row.cause, {}};
    if (!nearest || standing.is_nearer_than(*nearest)) nearest = std::move(standing);
  }
  return {MemoryCause::kUndecided, nearest->open.front().fact};
}

std::string_view name_of(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::kLittle: return "little";
    case MemoryCause::kLiveData: return "live-data";
    case MemoryCause::kLeak: return "leak";
    case MemoryCause::kOneBlock: return "one-block";
    case MemoryCause::kRounding: return "rounding";
    case MemoryCause::kArenas: return "arenas";
    case MemoryCause::kCaches: return "caches";
    case MemoryCause::kFreePages: return "free-pages";
    case MemoryCause::kHoles: return "holes";
    case MemoryCause::kMappings: return "mappings";
    case MemoryCause::kStacks: return "stacks";
    case MemoryCause::kFiles: return "files";
    case MemoryCause::kShared: return "shared-memory";
    case MemoryCause::kPageTables: return "page-tables";
    case MemoryCause::kMixed: return "mixed";
    case MemoryCause::kUndecided: return "undecided";
  }
  __builtin_unreachable();
}

bool blames_allocator(MemoryCause cause) noexcept { return cause >= MemoryCause::kRounding && cause <= MemoryCause::kHoles; }

MemoryVerdict verdict_of(const MemoryExperiment& experiment) {
  MemoryVerdict verdict{figures_of(experiment), {}};
  static_cast<MemoryDecision&>(verdict) = decide(verdict.facts);
  return verdict;
}

}  // namespace freehold::doctor
