// SPDX-License-Identifier: MIT
// From the experiment and the recordings to an answer: does the program lose scaling, how much of that is the allocator's
// doing, what exactly, and which fix was tried with what effect. Decisions and figures only; the words are the command's.
//
// The reasoning, in the order in which it is done (docs/doctor.md tells it at length):
//   1. Cost of a setting: seconds for the program's work. Lost: what it takes on all CPUs beyond what it would take if the
//      time on one CPU were divided among them (or stayed the same, where every thread brings its own work).
//   2. The machine's part of it: what as many single-CPU copies lose as well, which share no memory.
//   3. The allocator's part: what is not lost under the best other allocator. It counts only if it cannot be chance.
//   4. Of what kind the allocator's part is, the recording and the other treatments tell: blocks padded, faults, frees by
//      other threads.
//   5. What remains is the program's own: its locks if threads wait on them, its serial part if CPUs idle, else the data
//      that its threads share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/doctor/facts/estimate.hpp"
#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/facts/scalability.hpp"

namespace freehold::doctor {

struct Attribution;

enum class Cause : std::uint8_t {
  kNone,                   // it does not lose scaling
  kAllocatorLock,          // threads wait for each other inside malloc and free
  kRemoteFrees,            // blocks that other threads free than allocated them
  kAllocatorFalseSharing,  // blocks of different threads on one cache line
  kPageFaults,             // memory that malloc takes from and gives back to the kernel all the time
  kArenaBloat,             // no time, but memory: what threads' arenas hold
  kOwnLock,                // threads wait on a lock of the program's
  kOwnSharing,             // threads write the same cache lines, or spin
  kOwnPageFaults,          // the program maps and unmaps memory itself
  kOwnMalloc,              // a malloc of the program's own, or of its runtime, that no other can be put in the place of
  kMemoryBandwidth,        // processes that share nothing lose as much
  kCpuQuota,               // fewer CPUs than the program believes
  kSerial,                 // CPUs idle: too little of it runs at the same time
  kMixed,                  // the allocator's doing and the program's own
  kUndecided,              // the trials do not tell
};
inline constexpr std::size_t kCauses = 15;
[[nodiscard]] std::string_view name_of(Cause cause) noexcept;  // "allocator-lock"
[[nodiscard]] std::optional<Cause> cause_of(std::string_view name) noexcept;
// Returns whether the allocator is to blame: alone, or (mixed) among others.
[[nodiscard]] bool blames_allocator(Cause cause) noexcept;

// Why there is no verdict.
enum class Doubt : std::uint8_t {
  kNone,           // there is one
  kChance,         // what seems lost might not be
  kBusyMachine,    // other processes took too much of the CPUs
  kNoProcesses,    // without copies, memory bandwidth cannot be told from threads that share data
  kNoPadding,      // without padded blocks, blocks that share a line cannot be told from data that threads share
  kNoComparison,   // there is only one setting
  kContradiction,  // a fact speaks against what would be said
};
inline constexpr std::size_t kDoubts = 7;
[[nodiscard]] std::string_view name_of(Doubt doubt) noexcept;  // "busy-machine"

// Says what a verdict rests on. Other processes change times, but not what was counted: faults, memory, waits, lines, CPU
// time.
enum class Basis : std::uint8_t { kTime, kCounts, kBoth };
[[nodiscard]] std::string_view name_of(Basis basis) noexcept;  // "counts"

// A share of what is lost.
struct Part {
  Cause cause = Cause::kNone;
  Estimate share;  // of the lost time, 0 to 1
};

struct Verdict {
  Cause cause = Cause::kUndecided;
  Setting alone, all;  // the settings that were compared: one CPU or thread, and all of them
  Estimate speedup;    // of `all` over `alone`, the program as it is
  double ideal_speedup = 1;
  Estimate lost;                        // share of the time on all CPUs that is beyond the ideal, 0 to 1
  Estimate allocator_share;             // of what is lost, explained by the allocator
  std::vector<Part> parts;              // of what is lost, the greatest first
  std::vector<Fix> fixes;               // in the order of the experiment's variants, the program as it is left out
  std::optional<std::size_t> best_fix;  // into fixes: what to do, if anything helps
  std::vector<Scalability> scalability;
  // How many times as fast the program could be at most, if malloc and free took no time at all, and the kernel none for
  // memory; none: neither a recording nor samples say what malloc takes.
  std::optional<Estimate> most_gain;
  bool noisy = false;                   // the machine was busy with something else: believe less
  double disturbance = 0;               // share of the CPUs that others took from the trials that count, 0 to 1
  bool one_thread = false;              // it never had a second thread: there is no scaling
  std::optional<Basis> rests_on;        // none: it is undecided
  Doubt doubt = Doubt::kNone;           // why the cause is kUndecided
  Cause suspected = Cause::kUndecided;  // what the cause would be without the doubt
  std::optional<Fact> missing;          // that would decide whether it is; none: it is decided
  std::string_view experiment;          // that tells it; empty: the same
  Facts facts;                          // that the table was asked of
};

// True if the cause is one of what is lost: page faults and arenas can cost as much on one CPU.
[[nodiscard]] bool explains_loss(const Verdict& verdict) noexcept;

// Pre: the experiment has trials of variant 0 in at least one setting. `recorded`: of the program as it is on all of its
// CPUs; may be missing.
[[nodiscard]] Verdict verdict_of(const Experiment& experiment, const Attribution* recorded);

}  // namespace freehold::doctor
