// SPDX-License-Identifier: MIT
// Every quantity that a verdict uses, computed once: its value, the limits that nine of ten repetitions would keep, and
// where it comes from, or that it is not known. Comparisons with thresholds stand in verdict/verdict_table.cpp, and nowhere
// else.
//
// A busy machine widens limits. Other processes delay the program, so that what is told by time may be their doing: its
// limits leave room for that, in proportion to the CPU time that others took. Counts (faults, memory, waits, CPU time) they
// hardly change.
//
// Pure. One thread. Cost: a thousand draws of the trials (resampled.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/fact.hpp"
#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/facts/scalability.hpp"

namespace freehold::doctor {

enum class Fact : std::uint8_t {
  kThreads,
  kCpusAllowed,
  kTrials,
  kLost,
  kAllocatorPart,
  kQuotaPart,
  kMachinePart,
  kOwnPart,
  kBestGain,
  kUnexplainedGain,
  kAlikeGains,
  kPaddedGain,
  kPaddingSaves,
  kPaddingOfBest,
  kFreeholdSaves,
  kScalingSaved,
  kRemoteFrees,
  kInMalloc,
  kAsleepInMalloc,
  kGrowsAway,
  kGrownInMalloc,
  kOwnMalloc,
  kFaultRate,
  kKernelShare,
  kKernelShareAlone,
  kFaultsLeft,
  kFaultRateLeft,
  kKernelShareLeft,
  kKernelInMalloc,
  kFaultGain,
  kFaultTimeBeyondLoss,
  kMappedByProgram,
  kMemoryLeft,
  kMemorySaved,
  kMemoryLeftCapped,
  kFaultsLeftCapped,
  kLockTime,
  kLocksInCode,
  kLocksOverContended,
  kGrownInCode,
  kIdle,
  kLockSleeps,
  kRepeatedWork,
  kMoreCpuTime,
  kCpuTimeGrowth,
  kBeyondBandwidth,
};
inline constexpr std::size_t kFacts = static_cast<std::size_t>(Fact::kBeyondBandwidth) + 1;

[[nodiscard]] const FactDescription& describe(Fact fact) noexcept;
using Facts = FactValues<Fact, kFacts>;

// The effect of one treatment on the program on all of its CPUs.
struct Fix {
  std::size_t variant = 0;
  Estimate gain;        // the program's cost divided by the cost with this; above 1: faster
  Estimate memory;      // peak memory with this divided by the program's
  bool helps = false;   // beyond chance, and by enough to be worth it
  bool failed = false;  // the program ended differently under it
};

// From this share of the CPUs on that others took, the report says that the machine was busy.
inline constexpr double kBusyFrom = 0.08;

// The measured effect of each treatment, and the facts of the whole. `losses` is not empty (`all` is not null), and outlives
// this.
struct Gains {
  std::vector<Fix> fixes;
  std::optional<std::size_t> best_fix;
  std::vector<Scalability> scalability;
  std::optional<Estimate> most_gain;
  double disturbance = 0;  // share of the CPUs that others took from the trials that count
  bool noisy = false;
};
[[nodiscard]] Gains gains_of(const Losses& losses);
// The facts with the part of the loss that Losses::best_allocator takes off as the allocator's; 0: as if it had none.
[[nodiscard]] Facts facts_of(const Losses& losses, const Gains& gains);

// True if the program was seen to spend so little in malloc that no user would be advised to change it for another: neither
// CPU time nor sleep, nor page faults but those that fetch its memory once, nor much memory that is not live. Where blocks
// lie may matter all the same.
[[nodiscard]] bool no_malloc_can_help(const Attribution& recorded, const Cell& on_all);

}  // namespace freehold::doctor
