// SPDX-License-Identifier: MIT
#include "freehold/doctor/analysis/busy_machine.hpp"

#include <algorithm>
#include <cmath>

#include "freehold/doctor/analysis/attribution.hpp"
#include "freehold/doctor/analysis/causes.hpp"
#include "freehold/doctor/analysis/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr double kSureOnBusyMachine = 0.5;  // of what is lost, the lower limit of a part that is the answer there
constexpr double kSureGainOnBusyMachine = 1.15;
constexpr double kMostDisturbance = 0.3;  // of the CPUs was others': what was seen is not what the program does by itself
constexpr double kSureMixOnBusyMachine = 0.2;  // the lower limit of each of two parts there

class OnBusyMachine {
 public:
  explicit OnBusyMachine(const Losses& losses) : of_(losses) {}

  [[nodiscard]] bool stands(const Verdict& verdict) const {
    if (verdict.one_thread) return true;
    // Threads that seldom ran at the same time were not seen to get into each other's way.
    if (verdict.disturbance > kMostDisturbance) return false;
    const bool surely_loses = verdict.lost.low >= kLosesFrom;
    const auto surely = [&](double least) {
      return surely_loses && !verdict.parts.empty() && verdict.parts.front().cause == verdict.cause &&
             verdict.parts.front().share.low >= least;
    };
    switch (verdict.cause) {
      case Cause::kNone: return verdict.lost.high < kScalesBelow;
      case Cause::kArenaBloat: return verdict.lost.high < kScalesBelow || !surely_loses;
      case Cause::kMixed:
        return surely_loses && verdict.parts.size() >= 2 && verdict.parts[0].share.low >= kSureMixOnBusyMachine &&
               verdict.parts[1].share.low >= kSureMixOnBusyMachine;
      case Cause::kAllocatorLock:
      case Cause::kRemoteFrees:
        if (could_save(Treatment::kPadded, kPaddingExplains)) return false;
        [[fallthrough]];
      case Cause::kAllocatorFalseSharing:
      case Cause::kPageFaults:
        return surely(kSureOnBusyMachine) && verdict.best_fix &&
               verdict.fixes[*verdict.best_fix].gain.low >= kSureGainOnBusyMachine;
      case Cause::kCpuQuota: return surely(kSureOnBusyMachine);
      case Cause::kMemoryBandwidth:
        if (!copies_surely_need_more()) return false;
        break;
      case Cause::kSerial:
        if (of_.recorded == nullptr) return false;
        break;
      // What does not depend on who else is there: faults are counted, and threads were seen to wait elsewhere than in
      // malloc.
      case Cause::kOwnPageFaults: return surely(kSureOnBusyMachine) && faults_stay();
      case Cause::kOwnLock:
        if (of_.recorded->cpu_share + of_.recorded->blocked_share <= kInMalloc) return surely(kSureOnBusyMachine);
        break;
      default: break;
    }
    return surely(kSureOnBusyMachine) && !could_save(Treatment::kFreehold, kSureOnBusyMachine) &&
           !could_save(Treatment::kPadded, kSureOnBusyMachine);
  }

 private:
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

bool stands_on_busy_machine(const Losses& losses, const Verdict& verdict) { return OnBusyMachine(losses).stands(verdict); }

}  // namespace freehold::doctor
