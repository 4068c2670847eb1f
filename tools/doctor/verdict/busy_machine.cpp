// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/busy_machine.hpp"

#include <algorithm>
#include <cmath>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/verdict/causes.hpp"

namespace freehold::doctor {
namespace {

constexpr double kSureOnBusyMachine = 0.5;  // share of what is lost, the lower limit of a part that is the answer there
constexpr double kSureGainOnBusyMachine = 1.15;
constexpr double kLeastOnCpu = 0.15;  // share of the time that its threads were ready: less says nothing of the program
constexpr double kHardlyMoreThanOneCpu = 1.25;
constexpr double kHiddenLoss = 0.32;           // CPU time and idleness beyond the work, as if its threads had had all CPUs
constexpr double kShortWait_s = 1.5e-3;        // less than a slice of CPU time that the scheduler gives to others
constexpr double kSureMixOnBusyMachine = 0.2;  // the lower limit of each of two parts there
constexpr double kExplainsIdleness = 0.25;     // share of the idle CPUs: waits for locks that might be why
constexpr double kFewSleeps = 0.1;             // share of all, in locks
constexpr double kSurelyAsleep = 0.03;         // of the threads' lives, in malloc: blocks that share a line let nobody sleep

class OnBusyMachine {
 public:
  explicit OnBusyMachine(const Losses& losses) : of_(losses) {}

  [[nodiscard]] bool stands(const Verdict& verdict) const {
    if (verdict.one_thread || verdict.cause == Cause::kCpuQuota) return verdict.one_thread || is_surely(verdict);
    if (on_cpu() < kLeastOnCpu) return false;
    switch (verdict.cause) {
      case Cause::kNone:
        return verdict.lost.high < kScalesBelow && hides_no_loss() && (may_meet() || is_malloc_idle()) && !has_quota();
      case Cause::kPageFaults:
        if (Causes(of_).faults_take_more_than_is_lost(verdict)) return surely_gains(verdict);  // and they are counted
        break;
      case Cause::kArenaBloat: return verdict.lost.high < kMemoryAloneBelow;  // memory is counted; time may be lost beside
      case Cause::kMixed:
        return verdict.lost.low >= kLosesFrom && verdict.parts.size() >= 2 && surely_gains(verdict) &&
               verdict.parts[0].share.low >= kSureMixOnBusyMachine && verdict.parts[1].share.low >= kSureMixOnBusyMachine;
      default: break;
    }
    if (!is_surely(verdict)) return false;
    const bool as_if_quiet = is_lost_beside_others(verdict);
    if ((!as_if_quiet || of_.recorded == nullptr) && !is_counted(verdict.cause, verdict.lost.value)) return false;
    if (blames_allocator(verdict.cause))
      return surely_gains(verdict) &&
             ((as_if_quiet && verdict.cause == Cause::kRemoteFrees) || verdict.cause == Cause::kAllocatorFalseSharing ||
              verdict.cause == Cause::kPageFaults || of_.recorded->blocked_share >= kSurelyAsleep ||
              !could_save(Treatment::kPadded, kPaddingExplains));
    if (verdict.cause == Cause::kOwnPageFaults) return true;
    if (!is_malloc_idle() && could_save(Treatment::kFreehold, kSureOnBusyMachine)) return false;
    // A malloc that takes no time can put blocks of two threads on one line all the same.
    const bool is_asleep = verdict.cause == Cause::kOwnLock || verdict.cause == Cause::kSerial;
    return (is_asleep && is_malloc_idle()) || !could_save(Treatment::kPadded, kSureOnBusyMachine);
  }

  [[nodiscard]] Basis basis(const Verdict& verdict) const {
    if (verdict.one_thread) return Basis::kCounts;  // of its threads
    switch (verdict.cause) {
      case Cause::kArenaBloat: return verdict.parts.empty() ? Basis::kCounts : Basis::kBoth;
      case Cause::kNone: return hides_no_loss() ? Basis::kBoth : Basis::kTime;
      default: return is_counted(verdict.cause, verdict.lost.value) ? Basis::kBoth : Basis::kTime;
    }
  }

 private:
  // Control groups allow fewer CPUs than it was given: where others leave it less than that, nothing is throttled.
  [[nodiscard]] bool has_quota() const {
    return of_.experiment.quota_cpus > 0 && of_.experiment.quota_cpus < of_.all->setting.width();
  }
  // Whether the part that is the answer is so within its limits.
  [[nodiscard]] static bool is_surely(const Verdict& verdict) {
    return verdict.lost.low >= kLosesFrom && !verdict.parts.empty() && verdict.parts.front().cause == verdict.cause &&
           verdict.parts.front().share.low >= kSureOnBusyMachine;
  }
  // While others had a CPU that a thread was ready for, all its fellows may have waited for it, or spun; no longer. Whether
  // most of what is lost is lost without that. What copies need more is told by CPU time, which others change by caches.
  [[nodiscard]] bool is_lost_beside_others(const Verdict& verdict) const {
    const double made_up = median_of(*of_.all, [](const Trial& trial) { return trial.taken_s / trial.wall_s; });
    return verdict.cause != Cause::kMemoryBandwidth && verdict.lost.low - made_up >= kSureOnBusyMachine * verdict.lost.value;
  }
  [[nodiscard]] static bool surely_gains(const Verdict& verdict) {
    return verdict.best_fix && verdict.fixes[*verdict.best_fix].gain.low >= kSureGainOnBusyMachine;
  }
  // Whether what others do not change says the same: counts of the recording and of the kernel.
  [[nodiscard]] bool is_counted(Cause cause, double lost) const {
    if (cause == Cause::kMemoryBandwidth) return copies_surely_need_more();
    if (cause == Cause::kCpuQuota) return true;
    if (of_.recorded == nullptr) return false;
    switch (cause) {
      case Cause::kAllocatorFalseSharing: return of_.recorded->lines_shared > 0;
      case Cause::kOwnPageFaults: return faults_stay();
      // One that holds a lock and has no CPU lets the others wait for milliseconds, or spin: of a lock that matters by
      // itself the waits are short, or there are more than a thread can have that is held up once in a while.
      case Cause::kOwnLock: return waits_are_short();
      // A thread that others held up ends later, and its fellows' CPUs idle until then: by another time in each trial.
      case Cause::kSerial:
        return least_idle() >= std::max(kLosesFrom, kSureOnBusyMachine * lost) && !locks_may_explain(least_idle());
      default: return true;
    }
  }
  // Of the CPUs' time: no thread was ready for it, in the trial in which that was least.
  [[nodiscard]] double least_idle() const {
    double least = 1;
    for (const Trial& trial : of_.all->trials) least = std::min(least, idle_share(trial));
    return least + spun_share(of_.experiment, *of_.all);
  }
  [[nodiscard]] double idle_share(const Trial& trial) const {
    return std::max(0.0, 1 - (trial.cpu_s() + trial.taken_s) / (trial.wall_s * of_.all->setting.width()));
  }
  // Whether most of the waits' time is where they are short. Many short ones elsewhere say nothing of it.
  [[nodiscard]] bool waits_are_short() const {
    double seconds = 0, where_short = 0;
    for (const WaitSite& site : of_.recorded->lock_waits) {
      seconds += site.seconds;
      if (site.seconds <= kShortWait_s * site.count) where_short += site.seconds;
    }
    return of_.recorded->lock_wait_share >= kSomeLockWaits && where_short > kSureOnBusyMachine * seconds;
  }
  // Waits that the probe saw, or many short sleeps of which it is not known that they are elsewhere.
  [[nodiscard]] bool locks_may_explain(double idle) const {
    if (of_.recorded->lock_wait_share + of_.recorded->blocked_share >= kExplainsIdleness * idle) return true;
    if (of_.experiment.code.known && of_.experiment.code.lock_sleeps < kFewSleeps) return false;
    const double sleeps = median_of(*of_.all, [](const Trial& trial) { return double(trial.voluntary_switches); });
    return idle * median_of(*of_.all, &Trial::wall_s) * of_.all->setting.width() < kShortWait_s * sleeps;
  }
  [[nodiscard]] bool is_malloc_idle() const {
    return of_.recorded != nullptr && of_.recorded->cpu_share + of_.recorded->blocked_share <= kInMalloc;
  }
  // Of the time in which a thread was ready to run on all CPUs, it ran.
  [[nodiscard]] double on_cpu() const {
    return median_of(*of_.all, [](const Trial& trial) {
      const double wanted = trial.cpu_s() + trial.taken_s;
      return wanted > 0 ? trial.cpu_s() / wanted : 1;
    });
  }
  // False if others leave its threads hardly more than one CPU: they may run one after the other, and a lock in malloc
  // costs nothing. No trial tells what it would cost; that malloc takes no time, the recording does.
  [[nodiscard]] bool may_meet() const { return on_cpu() * of_.all->setting.width() >= kHardlyMoreThanOneCpu; }
  // Threads that seldom run at the same time seldom get into each other's way. What they lost by that grows with the time
  // that they do.
  [[nodiscard]] bool hides_no_loss() const {
    const double more =
        of_.costs
            .estimate([&](const Costs& costs) {
              return costs.cpu_seconds(*of_.all) / (of_.growth_of_work(costs) * costs.cpu_seconds(*of_.alone)) - 1;
            })
            .high;
    const double idle = doctor::idle_share(*of_.all);
    return (std::max(0.0, more) + idle) / on_cpu() < kHiddenLoss;
  }

  using Costs = Resampled::Costs;

  // Whether the treatment might save so much of what is lost; also if it was not tried.
  [[nodiscard]] bool could_save(Treatment treatment, double share) const {
    const Variant* const found = of_.experiment.find(treatment);
    if (found == nullptr) return true;
    const auto variant = static_cast<std::size_t>(found - of_.experiment.variants.data());
    if (!of_.has_pair(variant)) return true;
    const double high = of_.costs
                            .estimate([&](const Costs& costs) {
                              const double lost = of_.lost_with(costs, 0);
                              return lost > 0 ? (lost - of_.lost_with(costs, variant)) / lost : 1;
                            })
                            .high;
    return high >= share;
  }
  // Whether another allocator was tried, and the faults were the same with each.
  [[nodiscard]] bool faults_stay() const {
    const Variant* const found = of_.experiment.find(Treatment::kFreehold);
    if (found == nullptr) return false;
    const Cell* const with = of_.cell(static_cast<std::size_t>(found - of_.experiment.variants.data()), of_.all->setting);
    return with != nullptr && page_faults(*with) > kAsManyFaults * page_faults(*of_.all);
  }
  // Every trial of copies needed more CPU time than any of one alone.
  [[nodiscard]] bool copies_surely_need_more() const {
    double most_alone = 0, least_copied = INFINITY;
    for (const Cell& of : of_.experiment.cells) {
      if (of.variant != 0) continue;
      for (const Trial& trial : of.trials) {
        if (of.setting == of_.alone->setting) most_alone = std::max(most_alone, trial.cpu_s());
        if (of.setting.copies > 1) least_copied = std::min(least_copied, trial.cpu_s());
      }
    }
    return std::isfinite(least_copied) && least_copied > most_alone;
  }

  const Losses& of_;
};

}  // namespace

Basis basis_of(const Losses& losses, const Verdict& verdict) { return OnBusyMachine(losses).basis(verdict); }

bool stands_on_busy_machine(const Losses& losses, const Verdict& verdict) { return OnBusyMachine(losses).stands(verdict); }

}  // namespace freehold::doctor
