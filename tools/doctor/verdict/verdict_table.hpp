// SPDX-License-Identifier: MIT
// The knowledge of causes: a row for each way in which a cause shows. A row is sure if all that it needs is surely
// so, and nothing that excludes it is possible (evidence.hpp). The answer is the sure row; where several are, the first of
// the list, but `mixed` where one is the allocator's part of a loss and one is another part. Where none is sure the answer
// is "undecided", and names the nearest row and the fact that is missing, which the rest of the budget is spent on.
//
// The table of docs/diagnosis.md is written from this one (tests/doctor/judge_reports.cpp), and so are the margins.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/verdict/evidence.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

enum class Limit : std::uint8_t {
  kSeveralThreads,
  kFewerCpus,
  kEnoughTrials,
  kLoses,
  kSurelyLoses,
  kScales,
  kMuchLost,
  kPart,
  kSurePart,
  kWholePart,
  kGain,
  kFarFaster,
  kAlike,
  kPaddingSaves,
  kPaddingOfBest,
  kFreeholdSaves,
  kMostOfLoss,
  kScalingSaved,
  kManyRemote,
  kInMalloc,
  kAsleep,
  kGrowsAway,
  kGrownInMalloc,
  kMostOwnMalloc,
  kFaultRate,
  kKernelShare,
  kKernelShareAlone,
  kFaultsLeft,
  kSomeFaultsLeft,
  kKernelInMalloc,
  kFaultGain,
  kFaultTime,
  kMapped,
  kMemoryLeft,
  kMemorySaved,
  kLockTime,
  kInCode,
  kLocksOverContended,
  kIdle,
  kLockSleeps,
  kRepeatedWork,
  kMoreCpuTime,
  kCpuTimeGrowth,
  kMostOfMachine,
  kBeyondBandwidth,
};
inline constexpr std::size_t kLimits = static_cast<std::size_t>(Limit::kBeyondBandwidth) + 1;

// The thresholds, by Limit. judge_reports moves one to see which answers it holds.
using Thresholds = std::array<Threshold, kLimits>;
[[nodiscard]] Thresholds& thresholds() noexcept;
[[nodiscard]] inline double limit_of(Limit limit) noexcept { return thresholds()[static_cast<std::size_t>(limit)].value; }

using Criterion = CriterionOf<Fact, Limit>;
using AnyOf = std::vector<Criterion>;  // one of them is enough

struct Row {
  Cause cause = Cause::kUndecided;
  std::optional<Fact> part;            // that it explains; none: it is no cause of a loss, or of one thread
  std::vector<AnyOf> needs;            // all of them
  std::vector<Criterion> excluded_by;  // none of which may be possible; what is not known is possible
  std::string_view probable;           // what it looks like where it is not sure
  std::string_view experiment;         // that would decide it
};
// In the order in which they are asked.
[[nodiscard]] const std::vector<Row>& rows();
// Returns the needs of every cause of a loss, beside its row.
[[nodiscard]] std::vector<AnyOf> needs_of_loss(Fact part);
// Its row without these is what the allocator's part is held to: where no row's is, it is none.
[[nodiscard]] const std::vector<AnyOf>& needs_of_allocators_part();
// Returns the groups of evidence that several rows need, by names for readers.
[[nodiscard]] const std::vector<std::pair<std::string_view, AnyOf>>& named_evidence();
// Returns the evidence that excludes every cause.
[[nodiscard]] const std::vector<Criterion>& excludes_all();

}  // namespace freehold::doctor
