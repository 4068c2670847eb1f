// SPDX-License-Identifier: MIT
// Why a program takes so much memory: its parts and its facts (facts/memory_facts.hpp), and a table of causes, read as that
// of time is (evidence.hpp). The cause is the greatest part, if it is great enough and the measures agree; live data is
// never the allocator's doing. Decisions only; the words are the command's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/memory_facts.hpp"
#include "tools/doctor/verdict/evidence.hpp"

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

enum class MemoryLimit : std::uint8_t { kWhole, kTwice, kTolerance, kLittle, kMain, kGreat, kAhead, kMostOfLive, kHalf };
inline constexpr std::size_t kMemoryLimits = static_cast<std::size_t>(MemoryLimit::kHalf) + 1;
using MemoryThresholds = std::array<Threshold, kMemoryLimits>;
[[nodiscard]] MemoryThresholds& memory_thresholds() noexcept;
[[nodiscard]] inline double limit_of(MemoryLimit limit) noexcept {
  return memory_thresholds()[static_cast<std::size_t>(limit)].value;
}

using MemoryCriterion = CriterionOf<MemoryFact, MemoryLimit>;
using MemoryAnyOf = std::vector<MemoryCriterion>;  // one of them is enough
struct MemoryRow {
  MemoryCause cause = MemoryCause::kUndecided;
  std::optional<MemoryFact> part = {};  // that it blames
  std::vector<MemoryAnyOf> needs = {};
  bool needs_agreement = true;  // of the measures
};
// In the order in which they are asked: the first that is sure is the cause.
[[nodiscard]] const std::vector<MemoryRow>& memory_rows();
// Returns what every row needs as well that blames a part, and that needs the measures to agree.
[[nodiscard]] std::vector<MemoryAnyOf> needs_of_part(MemoryFact part);
[[nodiscard]] const std::vector<MemoryAnyOf>& needs_of_agreement();

struct MemoryDecision {
  MemoryCause cause = MemoryCause::kUndecided;
  std::optional<MemoryFact> missing;  // what the nearest row lacks; none: it is decided
};
[[nodiscard]] MemoryDecision decide(const MemoryFacts& facts);

struct MemoryVerdict : MemoryFigures, MemoryDecision {};

// Pre: the first cell has a trial.
[[nodiscard]] MemoryVerdict verdict_of(const MemoryExperiment& experiment);

}  // namespace freehold::doctor
