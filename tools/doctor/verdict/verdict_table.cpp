// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor {
namespace {

using enum Fact;

constexpr Criterion at_least(Fact fact, Limit limit) { return {fact, Is::kAtLeast, limit}; }
constexpr Criterion below(Fact fact, Limit limit) { return {fact, Is::kBelow, limit}; }
constexpr Criterion about_at_least(Fact fact, Limit limit) { return {fact, Is::kAboutAtLeast, limit}; }
constexpr Criterion about_below(Fact fact, Limit limit) { return {fact, Is::kAboutBelow, limit}; }
constexpr Criterion known(Fact fact) { return {fact, Is::kKnown}; }
constexpr Criterion unknown(Fact fact) { return {fact, Is::kUnknown}; }

const AnyOf kKernelIsBusy{at_least(kKernelShare, Limit::kKernelShare)};
const AnyOf kKernelIsBusyAlone{at_least(kKernelShareAlone, Limit::kKernelShareAlone)};
const AnyOf kNoFaults{below(kFaultRateLeft, Limit::kFaultRate), below(kKernelShareLeft, Limit::kKernelShare),
                      below(kKernelShareAlone, Limit::kKernelShareAlone)};
const AnyOf kThreads2{at_least(kThreads, Limit::kSeveralThreads)};
const AnyOf kLessMemory{below(kMemoryLeft, Limit::kMemoryLeft)};
const AnyOf kMuchLess{at_least(kMemorySaved, Limit::kMemorySaved)};
// Threads that wait in malloc sleep there, or spend CPU time there that comes with the CPUs and goes with another allocator.
// What was not recorded contradicts nothing.
const AnyOf kWaitsInMalloc{at_least(kAsleepInMalloc, Limit::kAsleep), unknown(kInMalloc),
                           at_least(kGrowsAway, Limit::kGrowsAway)};
// Times alone blame malloc if nothing was recorded, and trials of threads that wait differ by more than a gain.
const AnyOf kSeenTwice{known(kInMalloc), at_least(kTrials, Limit::kEnoughTrials)};
// CPUs idle by chance in a single run, too; samples of both runs say what else the threads do.
const AnyOf kSeenTwiceOrSampled{known(kGrownInCode), at_least(kTrials, Limit::kEnoughTrials)};
// Threads that spend no time in malloc do not pay for it there.
const AnyOf kTimeInMalloc{at_least(kInMalloc, Limit::kInMalloc), unknown(kInMalloc)};
const AnyOf kGrowsInMalloc{at_least(kGrownInMalloc, Limit::kGrownInMalloc), at_least(kAsleepInMalloc, Limit::kAsleep),
                           unknown(kInMalloc), unknown(kGrownInMalloc)};
const AnyOf kSeenOrMost{known(kGrownInMalloc), at_least(kAsleepInMalloc, Limit::kAsleep), unknown(kInMalloc),
                        about_at_least(kAllocatorPart, Limit::kMostOfLoss)};
const AnyOf kNotByPadding{below(kPaddingSaves, Limit::kMostOfLoss), at_least(kAsleepInMalloc, Limit::kAsleep),
                          unknown(kPaddingSaves)};
const AnyOf kNotByKernel{below(kKernelInMalloc, Limit::kKernelInMalloc), below(kFaultRate, Limit::kFaultRate),
                         below(kKernelShare, Limit::kKernelShare), below(kKernelShareAlone, Limit::kKernelShareAlone),
                         unknown(kKernelInMalloc)};
// Neither blocks on shared lines nor another allocator is why, unless its part is told beside. A malloc that takes no time
// can put blocks of two threads on one line all the same, which lets no thread sleep.
const AnyOf kNotByFreehold{below(kFreeholdSaves, Limit::kFreeholdSaves), below(kInMalloc, Limit::kInMalloc),
                           unknown(kFreeholdSaves), at_least(kAllocatorPart, Limit::kSurePart)};
const AnyOf kNotByBlocks{below(kPaddingSaves, Limit::kPaddingSaves), unknown(kPaddingSaves),
                         at_least(kAllocatorPart, Limit::kSurePart)};
const AnyOf kNotByLines{below(kPaddingSaves, Limit::kPaddingSaves), below(kInMalloc, Limit::kInMalloc),
                        unknown(kPaddingSaves), at_least(kAllocatorPart, Limit::kSurePart)};
const AnyOf kPaddingWasTried{below(kPaddedGain, Limit::kFarFaster), at_least(kAllocatorPart, Limit::kSurePart)};
// Samples tell first, where they tell anything.
const AnyOf kNotSeenInCode{about_below(kGrownInCode, Limit::kInCode), unknown(kGrownInCode)};
const AnyOf kNoLockInCode{about_below(kGrownInCode, Limit::kInCode), about_below(kLocksInCode, Limit::kInCode),
                          unknown(kGrownInCode)};
// The machine's part is known of a program that was copied.
const AnyOf kToldFromBandwidth{below(kMachinePart, Limit::kMostOfMachine),
                               at_least(kBeyondBandwidth, Limit::kBeyondBandwidth)};

}  // namespace

// The last two figures of each are written by tests/doctor/margins.py.
Thresholds& thresholds() noexcept {
  static Thresholds all = by_limit<Limit, kLimits>({
      {Limit::kSeveralThreads, {2, "one thread waits for no other", 0, 4}},
      {Limit::kFewerCpus, {1, "it has more threads than it may use CPUs", 0, 0}},
      {Limit::kEnoughTrials, {2, "one trial tells nothing", 0, 13}},
      {Limit::kLoses, {0.12, "less is nothing to worry about", 0, 0}},
      {Limit::kSurelyLoses, {0.04, "there is surely some loss", 0, 0}},
      {Limit::kScales, {0.24, "the upper limit: twice what is worth a worry is excluded", 1, 0}},
      {Limit::kMuchLost, {0.5, "where half of the time is lost, memory is not the answer", 0, 0}},
      {Limit::kPart, {0.25, "a part that is named", 1, 0}},
      {Limit::kSurePart, {0.10, "the part is surely there", 0, 0}},
      {Limit::kWholePart, {0.75, "a part that is the whole answer", 0, 1}},
      {Limit::kGain, {1.02, "a gain below 2% is not told from noise", 0, 0}},
      {Limit::kFarFaster, {2, "a gain that has a reason, whether or not the program scales", 0, 0}},
      {Limit::kAlike, {1.4, "treatments that help so much alike show slow trials of the program's own", 0, 0}},
      {Limit::kPaddingSaves, {0.5, "lines of the program's own stay where they are when blocks are padded", 0, 0}},
      {Limit::kPaddingOfBest, {0.6, "what else an allocator does is the lesser part", 0, 0}},
      {Limit::kFreeholdSaves, {0.5, "most of what is lost is the allocator's", 1, 0}},
      {Limit::kMostOfLoss, {0.6, "most of it, so that without other evidence it is why", 0, 0}},
      {Limit::kScalingSaved, {0.25, "an allocator that is only faster, on one CPU as on all, explains no loss", 0, 0}},
      {Limit::kManyRemote, {0.4, "of two threads that pass blocks to each other half of the frees are", 0, 0}},
      {Limit::kInMalloc, {0.05, "less time cannot be what is lost", 0, 0}},
      {Limit::kAsleep, {0.005, "threads wait for each other in malloc: a lock that is free lets no thread sleep", 0, 0}},
      {Limit::kGrowsAway, {0.3, "the work that comes with the CPUs goes with another allocator", 0, 0}},
      {Limit::kGrownInMalloc, {0.03, "so few samples of growth may be chance", 0, 0}},
      {Limit::kMostOwnMalloc, {0.5, "what it allocates passes other mallocs by", 0, 0}},
      {Limit::kFaultRate, {5000, "at 2 to 10 us each they take some percent of a CPU", 0, 0}},
      {Limit::kKernelShare, {0.25, "the kernel is busy for the program", 0, 0}},
      {Limit::kKernelShareAlone,
       {0.1, "on one CPU, too, where no thread wakes another, the kernel takes a part that matters", 0, 0}},
      {Limit::kFaultsLeft, {0.5, "most go with another allocator", 0, 0}},
      {Limit::kSomeFaultsLeft, {0.8, "some do", 0, 0}},
      {Limit::kKernelInMalloc, {0.5, "most of the time is the kernel's, in calls of malloc", 0, 0}},
      {Limit::kFaultGain, {1.25, "page faults alone are worth a verdict", 0, 0}},
      {Limit::kFaultTime, {0, "they take more than may be lost in scaling", 0, 0}},
      {Limit::kMapped, {0.5, "most pages come from calls of the program's own", 1, 0}},
      {Limit::kMemoryLeft, {0.67, "1 / 1.5: it holds half as much again as it needs, or more", 0, 0}},
      {Limit::kMemorySaved, {32, "so much memory is worth a word", 0, 0}},
      {Limit::kLockTime, {0.5, "the waits are most of what is lost", 1, 0}},
      {Limit::kInCode, {0.25, "samples see a part of the CPU time that is lost", 0, 0}},
      {Limit::kLocksOverContended, {0.5, "waiters also do atomic operations on the lock's own word", 0, 0}},
      {Limit::kIdle, {0.5, "most of what is lost is idleness", 1, 0}},
      {Limit::kLockSleeps, {0.5, "the sleeps are why most of the idle CPUs idle", 0, 0}},
      {Limit::kRepeatedWork, {0.5, "most of what is lost is work that threads do again", 0, 0}},
      {Limit::kMoreCpuTime, {0.25, "CPUs are busy without result", 0, 0}},
      {Limit::kCpuTimeGrowth, {1.05, "CPU time that grows by less is no sign of wasted work", 0, 0}},
      {Limit::kMostOfMachine, {0.5, "most of what is lost is not the machine's", 0, 0}},
      {Limit::kBeyondBandwidth, {1, "memory that all CPUs wait for costs no more", 0, 0}},
  });
  return all;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      // One CPU for many threads, or one thread for many CPUs: there is no scaling to lose.
      {.cause = Cause::kCpuQuota,
       .part = {},
       .needs = {{below(kCpusAllowed, Limit::kFewerCpus)}, {unknown(kLost)}},
       .excluded_by = {},
       .probable = "it has more threads than it may use CPUs",
       .experiment = "a run on more CPUs"},
      {.cause = Cause::kAllocatorFalseSharing,
       .part = kAllocatorPart,
       .needs = {{at_least(kPaddingOfBest, Limit::kPaddingOfBest)},
                 {about_at_least(kAllocatorPart, Limit::kMostOfLoss)},
                 kSeenTwice},
       .excluded_by = {},
       .probable = "padded blocks help",
       .experiment = "padded blocks on one CPU and on all"},
      {.cause = Cause::kRemoteFrees,
       .part = kAllocatorPart,
       .needs = {{at_least(kRemoteFrees, Limit::kManyRemote)}, kLessMemory, kMuchLess, kWaitsInMalloc},
       .excluded_by = {},
       .probable = "arenas hold blocks that other threads freed",
       .experiment = "a recording, and trials with other allocators"},
      {.cause = Cause::kArenaBloat,
       .part = kAllocatorPart,
       .needs = {kLessMemory,
                 kMuchLess,
                 {below(kMemoryLeftCapped, Limit::kMemoryLeft)},
                 {below(kFaultsLeftCapped, Limit::kFaultsLeft)},
                 {about_below(kLost, Limit::kMuchLost)}},
       .excluded_by = {},
       .probable = "the faults go with the arenas",
       .experiment = "trials with fewer arenas"},
      {.cause = Cause::kPageFaults,
       .part = kAllocatorPart,
       .needs = {kKernelIsBusy,
                 kKernelIsBusyAlone,
                 {below(kFaultsLeft, Limit::kFaultsLeft), at_least(kKernelInMalloc, Limit::kKernelInMalloc)}},
       .excluded_by = {at_least(kFaultsLeft, Limit::kSomeFaultsLeft)},
       .probable = "another allocator has fewer page faults",
       .experiment = "trials with allocators that keep memory"},
      {.cause = Cause::kPageFaults,
       .part = {},
       .needs = {kKernelIsBusy,
                 kKernelIsBusyAlone,
                 {at_least(kFaultGain, Limit::kFaultGain)},
                 {at_least(kFaultTimeBeyondLoss, Limit::kFaultTime), below(kLost, Limit::kScales)}},
       .excluded_by = {},
       .probable = "a malloc that takes memory from the kernel and gives it back is slower than one that keeps it",
       .experiment = "trials with allocators that keep memory"},
      {.cause = Cause::kArenaBloat,
       .part = {},
       .needs = {kLessMemory,
                 kMuchLess,
                 {below(kLost, Limit::kMuchLost), at_least(kLost, Limit::kLoses), below(kThreads, Limit::kSeveralThreads),
                  unknown(kLost)},
                 {about_below(kLost, Limit::kScales), below(kThreads, Limit::kSeveralThreads), unknown(kLost)}},
       .excluded_by = {},
       .probable = "fewer arenas do with less memory",
       .experiment = "trials with fewer arenas, and more of the program as it is"},
      {.cause = Cause::kRemoteFrees,
       .part = kAllocatorPart,
       .needs = {{at_least(kRemoteFrees, Limit::kManyRemote)}, kTimeInMalloc, kWaitsInMalloc, kNotByPadding, kNotByKernel},
       .excluded_by = {},
       .probable = "blocks are freed by another thread",
       .experiment = "a recording, and trials with other allocators"},
      {.cause = Cause::kAllocatorLock,
       .part = kAllocatorPart,
       .needs = {kWaitsInMalloc, kGrowsInMalloc, kSeenOrMost, kSeenTwice, kNotByPadding, kNotByKernel},
       .excluded_by = {},
       .probable = "another allocator scales",
       .experiment = "trials with other allocators on one CPU and on all"},
      {.cause = Cause::kSerial,
       .part = {},
       .needs = {{below(kThreads, Limit::kSeveralThreads)}, {known(kLost)}},
       .excluded_by = {},
       .probable = "there is one thread",
       .experiment = "a look at its threads"},
      {.cause = Cause::kNone,
       .part = {},
       .needs = {{at_least(kTrials, Limit::kEnoughTrials)},
                 {below(kLost, Limit::kScales)},
                 {about_below(kLost, Limit::kLoses), about_at_least(kMachinePart, Limit::kPart)}},
       .excluded_by = {at_least(kUnexplainedGain, Limit::kFarFaster)},
       .probable = "it scales",
       .experiment = "more trials of the program as it is, on one CPU and on all"},
      {.cause = Cause::kCpuQuota,
       .part = kQuotaPart,
       .needs = {},
       .excluded_by = {},
       .probable = "it had fewer CPUs than it was given",
       .experiment = "more trials of the program as it is"},
      {.cause = Cause::kMemoryBandwidth,
       .part = kMachinePart,
       .needs = {kNoFaults, {about_below(kBestGain, Limit::kFarFaster), unknown(kBestGain)}},
       .excluded_by = {},
       .probable = "processes that share nothing lose as much",
       .experiment = "more copies of the program at the same time"},
      {.cause = Cause::kOwnLock,
       .part = kOwnPart,
       .needs = {{at_least(kLockTime, Limit::kLockTime)}, kNotByFreehold, kNotByLines},
       .excluded_by = {},
       .probable = "threads wait for locks of the program's",
       .experiment = "a recording"},
      {.cause = Cause::kOwnPageFaults,
       .part = kOwnPart,
       .needs = {{at_least(kFaultRateLeft, Limit::kFaultRate)},
                 {at_least(kKernelShareLeft, Limit::kKernelShare)},
                 {at_least(kMappedByProgram, Limit::kMapped)}},
       .excluded_by = {},
       .probable = "page faults stay with every allocator",
       .experiment = "a recording, which counts the program's calls of mmap()"},
      {.cause = Cause::kOwnMalloc,
       .part = kOwnPart,
       .needs = {{at_least(kOwnMalloc, Limit::kMostOwnMalloc)}, {at_least(kGrownInMalloc, Limit::kGrownInMalloc)}},
       .excluded_by = {},
       .probable = "CPU time comes with the threads in a malloc that no other can be put in the place of",
       .experiment = "samples of its code"},
      {.cause = Cause::kOwnLock,
       .part = kOwnPart,
       .needs = {kNoFaults,
                 {at_least(kLocksInCode, Limit::kInCode)},
                 {at_least(kLocksOverContended, Limit::kLocksOverContended)},
                 kNotByLines},
       .excluded_by = {},
       .probable = "CPU time comes with the threads where locks are taken",
       .experiment = "samples of its code"},
      {.cause = Cause::kOwnSharing,
       .part = kOwnPart,
       .needs = {kNoFaults,
                 {at_least(kGrownInCode, Limit::kInCode)},
                 {about_below(kLocksInCode, Limit::kInCode), below(kLocksOverContended, Limit::kLocksOverContended)},
                 kPaddingWasTried,
                 kNotByBlocks},
       .excluded_by = {},
       .probable = "CPU time comes with the threads at atomic operations",
       .experiment = "samples of its code, padded blocks and copies"},
      {.cause = Cause::kSerial,
       .part = kOwnPart,
       .needs = {kSeenTwiceOrSampled,
                 kNotSeenInCode,
                 {at_least(kIdle, Limit::kIdle)},
                 {at_least(kAsleepInMalloc, Limit::kAsleep), below(kLockSleeps, Limit::kLockSleeps)},
                 kNotByFreehold,
                 kNotByLines},
       .excluded_by = {},
       .probable = "CPUs idle",
       .experiment = "a recording, and more trials of the program as it is"},
      {.cause = Cause::kOwnLock,
       .part = kOwnPart,
       .needs = {kNotSeenInCode,
                 {at_least(kIdle, Limit::kIdle)},
                 {at_least(kLockSleeps, Limit::kLockSleeps)},
                 {below(kAsleepInMalloc, Limit::kAsleep), unknown(kAsleepInMalloc)},
                 kNotByFreehold,
                 kNotByLines},
       .excluded_by = {},
       .probable = "CPUs idle while threads sleep in locks",
       .experiment = "a recording"},
      {.cause = Cause::kOwnSharing,
       .part = kOwnPart,
       .needs = {kNoFaults,
                 {below(kIdle, Limit::kIdle)},
                 {below(kRepeatedWork, Limit::kRepeatedWork)},
                 {at_least(kMoreCpuTime, Limit::kMoreCpuTime)},
                 {at_least(kCpuTimeGrowth, Limit::kCpuTimeGrowth)},
                 kToldFromBandwidth,
                 kNoLockInCode,
                 kPaddingWasTried,
                 kNotByFreehold,
                 kNotByBlocks},
       .excluded_by = {},
       .probable = "CPUs are busy without result",
       .experiment = "copies of the program, and padded blocks"},
  };
  return kRows;
}

std::vector<AnyOf> needs_of_loss(Fact part) {
  return {kThreads2,
          {about_at_least(kLost, Limit::kLoses)},
          {at_least(kLost, Limit::kSurelyLoses)},
          {about_at_least(part, Limit::kPart)},
          {at_least(part, Limit::kSurePart)}};
}

const std::vector<AnyOf>& needs_of_allocators_part() {
  static const std::vector<AnyOf> kNeeds{
      {at_least(kBestGain, Limit::kGain)},
      {about_at_least(kAllocatorPart, Limit::kWholePart), at_least(kScalingSaved, Limit::kScalingSaved)}};
  return kNeeds;
}

const std::vector<std::pair<std::string_view, AnyOf>>& named_evidence() {
  static const std::vector<std::pair<std::string_view, AnyOf>> kNamed{
      {"few faults are left", kNoFaults}, {"waits in malloc", kWaitsInMalloc},    {"more time in malloc", kGrowsInMalloc},
      {"not by padding", kNotByPadding},  {"not by the kernel", kNotByKernel},    {"not by Freehold", kNotByFreehold},
      {"not by blocks", kNotByBlocks},    {"not by lines in malloc", kNotByLines}};
  return kNamed;
}

const std::vector<Criterion>& excludes_all() {
  static const std::vector<Criterion> kAll{{kAlikeGains, Is::kBelow, Limit::kAlike}};
  return kAll;
}

}  // namespace freehold::doctor
