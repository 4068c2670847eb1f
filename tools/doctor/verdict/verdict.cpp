// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/bound.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/facts/scalability.hpp"
#include "tools/doctor/verdict/busy_machine.hpp"
#include "tools/doctor/verdict/causes.hpp"
#include "tools/doctor/verdict/consistency.hpp"

namespace freehold::doctor {
namespace {

// What counts as something. Shares are of what is lost unless said.
constexpr double kSurelyLosesFrom = 0.04;   // the same, of the lower limit
constexpr std::size_t kTrialsToAcquit = 2;  // of each of the two settings: one trial alone excludes nothing
constexpr double kPartFrom = 0.25;          // a part that is named
constexpr double kSurePartFrom = 0.10;      // its lower limit
constexpr double kGainFrom = 1.05;          // a fix that is worth it
constexpr double kSureGainFrom = 1.02;      // and surely more than this
constexpr double kError = 0.01;             // of the draws, for all looks: several fixes are tried, one of them is lucky
constexpr double kNoisyControl = 1.15;
constexpr double kNoisySpread = 0.12;
constexpr double kOneBusy = 1.05;  // CPUs that one thread can keep busy

constexpr std::array<std::string_view, kCauses> kCauseNames{
    "none",     "allocator-lock", "remote-frees",    "allocator-false-sharing", "page-faults", "arena-bloat",
    "own-lock", "own-sharing",    "own-page-faults", "memory-bandwidth",        "cpu-quota",   "serial",
    "mixed",    "undecided"};

class Judge {
 public:
  Judge(const Experiment& experiment, const Attribution* recorded)
      : experiment_(without_disturbed(experiment)), of_(experiment_, recorded), causes_(of_) {}

  Verdict verdict() {
    Verdict verdict;
    if (of_.all == nullptr) return verdict;
    verdict.all = of_.all->setting;
    verdict.alone = of_.alone != nullptr ? of_.alone->setting : of_.all->setting;
    judge_fixes(verdict);
    hold_to_bound(verdict);
    choose_fix(verdict);
    choose_allocator(verdict);
    judge_noise(verdict);
    fit_laws(verdict);
    verdict.one_thread = has_one_thread();
    if (of_.alone == nullptr) {
      verdict.cause = cause_without_comparison(verdict);
      if (verdict.cause == Cause::kUndecided) verdict.doubt = Doubt::kNoComparison;
      return verdict;
    }
    if (verdict.one_thread || !causes_.is_credible(causes_.allocator_cause(verdict)) || of_.is_only_faster())
      of_.best_allocator = 0;
    judge_loss(verdict);
    verdict.cause = verdict.one_thread ? cause_of_one_thread(verdict) : cause(verdict);
    if (verdict.cause == Cause::kOwnSharing && !causes_.padding_was_tried()) doubt(verdict, Doubt::kNoPadding);
    if (is_told_by_copies(verdict.cause) && !is_sure_part(verdict)) doubt(verdict, Doubt::kChance);
    if (verdict.cause == Cause::kUndecided && verdict.doubt == Doubt::kNone) verdict.doubt = doubt_of_own_part(verdict);
    if (verdict.cause != Cause::kUndecided && verdict.disturbance > kBusyFrom && !stands_on_busy_machine(of_, verdict))
      doubt(verdict, Doubt::kBusyMachine);
    verdict.contradictions = contradictions_in(experiment_, verdict);
    if (!verdict.contradictions.empty()) doubt(verdict, Doubt::kContradiction);
    if (verdict.cause != Cause::kUndecided) verdict.rests_on = basis_of(of_, verdict);
    if (std::ranges::count(verdict.contradictions, Contradiction::kAllHelpAlike) > 0) withdraw_advice(verdict);
    return verdict;
  }

 private:
  using Costs = Resampled::Costs;

  void judge_fixes(Verdict& verdict) {
    for (std::size_t v = 1; v < experiment_.variants.size(); ++v) {
      Fix fix;
      fix.variant = v;
      const Cell* const with = of_.cell(v, of_.all->setting);
      fix.failed =
          std::ranges::any_of(experiment_.cells, [v](const Cell& of) { return of.variant == v && !of.failure.empty(); });
      if (with == nullptr && !fix.failed) continue;
      if (with != nullptr) {
        fix.gain = of_.costs.estimate([&](const Costs& costs) { return costs(*of_.all) / costs(*with); });
        const double ratio = peak_bytes(*with) / std::max(1.0, peak_bytes(*of_.all));
        fix.memory = {ratio, ratio, ratio};
        fix.helps = !fix.failed && fix.gain.value >= kGainFrom && of_.costs.confidence([&](const Costs& costs) {
          return costs(*of_.all) / costs(*with) >= kSureGainFrom;
        }) >= 1 - kError / experiment_.looks;
      }
      verdict.fixes.push_back(fix);
    }
  }

  // Where malloc is idle, no other one helps, unless blocks lie elsewhere: what seems to help is a program that was slow in
  // its own trials. What surely does more than the bound does it by where it puts blocks, which an allocator could do, too.
  void hold_to_bound(Verdict& verdict) const {
    verdict.most_gain = bound_of(experiment_, *of_.all, of_.recorded, of_.costs.usual_spread());
    if (!verdict.most_gain) return;
    double& most = verdict.most_gain->high;
    const double inside_malloc = most;
    for (Fix& fix : verdict.fixes) {
      const bool is_padded = experiment_.variants[fix.variant].treatment == Treatment::kPadded;
      if (!is_padded && causes_.malloc_is_idle(fix.variant) && !causes_.placement_matters(verdict)) fix.helps = false;
      if (fix.helps && fix.gain.low > inside_malloc) most = std::max(most, fix.gain.high);
    }
    for (Fix& fix : verdict.fixes) {
      if (fix.gain.value <= 0) continue;
      const bool disagree = fix.gain.low > most;  // the trials and the bound: then no difference is not excluded
      fix.gain = {disagree ? 1 : fix.gain.low, std::min(fix.gain.value, most), std::min(fix.gain.high, most)};
      fix.helps = fix.helps && fix.gain.value >= kGainFrom;
    }
  }

  void choose_fix(Verdict& verdict) const {
    for (std::size_t i = 0; i < verdict.fixes.size(); ++i) {
      const Fix& fix = verdict.fixes[i];
      if (fix.helps && (!verdict.best_fix || fix.gain.value > verdict.fixes[*verdict.best_fix].gain.value))
        verdict.best_fix = i;
    }
    prefer_freehold(verdict);
  }

  // What cannot be told from the best by these trials is as good, and Freehold is here already.
  void prefer_freehold(Verdict& verdict) const {
    for (std::size_t i = 0; i < verdict.fixes.size(); ++i) {
      const Fix& fix = verdict.fixes[i];
      const bool is_ours = experiment_.variants[fix.variant].treatment == Treatment::kFreehold;
      if (is_ours && fix.helps && fix.gain.high >= verdict.fixes[*verdict.best_fix].gain.low) verdict.best_fix = i;
    }
  }

  // The treatment that the allocator's part is measured by: the one under which least is lost, of those that surely help.
  void choose_allocator(const Verdict& verdict) {
    if (of_.alone == nullptr) return;
    double least = 0;
    for (const Fix& fix : verdict.fixes) {
      if (!fix.helps || !of_.has_pair(fix.variant)) continue;
      const double lost = of_.costs.estimate([&](const Costs& costs) { return of_.lost_with(costs, fix.variant); }).value;
      if (of_.best_allocator == 0 || lost < least) {
        of_.best_allocator = fix.variant;
        least = lost;
      }
    }
  }

  void judge_noise(Verdict& verdict) const {
    const auto taken = [](const Cell* of) {
      return of == nullptr ? 0 : median_of(*of, [of](const Trial& trial) { return taken_share(trial, of->setting); });
    };
    verdict.disturbance = std::max(taken(of_.all), taken(of_.alone));
    for (const Fix& fix : verdict.fixes) {
      // That these do not help acquits the allocator.
      const Treatment treatment = experiment_.variants[fix.variant].treatment;
      const bool may_acquit = treatment == Treatment::kPadded || treatment == Treatment::kFreehold;
      if (fix.helps || may_acquit)
        verdict.disturbance = std::max(verdict.disturbance, taken(of_.cell(fix.variant, of_.all->setting)));
    }
    verdict.noisy = experiment_.control.compute > kNoisyControl || of_.costs.usual_spread() > kNoisySpread ||
                    verdict.disturbance > kBusyFrom;
  }

  void fit_laws(Verdict& verdict) const {
    for (std::size_t v = 0; v < experiment_.variants.size(); ++v) {
      const Cell* const one = of_.alone == nullptr ? nullptr : of_.cell(v, of_.alone->setting);
      if (one == nullptr || one->setting.width() != 1) continue;
      std::vector<Speed> speeds;
      for (const Setting& setting : experiment_.sweep()) {
        const Cell* const at = of_.cell(v, setting);
        if (at == nullptr || setting.threads > setting.cpus) continue;  // the law knows nothing of threads that take turns
        speeds.push_back({double(setting.width()), growth_of_work(experiment_, *at) * cost(*one) / cost(*at)});
      }
      if (speeds.size() < 2) continue;
      verdict.scalability.push_back(fit(speeds));
      verdict.scalability.back().variant = v;
    }
  }

  void judge_loss(Verdict& verdict) const {
    const double width = of_.all->setting.width();
    verdict.ideal_speedup = width / of_.alone->setting.width();
    verdict.speedup = of_.costs.estimate(
        [&](const Costs& costs) { return of_.growth_of_work(costs) * costs(*of_.alone) / costs(*of_.all); });
    verdict.lost = of_.costs.estimate([&](const Costs& costs) {
      const Split s = of_.split(costs);
      return s.lost / s.all;
    });
    verdict.allocator_share = of_.share(&Split::allocator);
    if (!loses(verdict)) return;
    if (verdict.one_thread) {
      verdict.parts = {{Cause::kSerial, {1, 1, 1}}};
      return;
    }
    const auto own = of_.costs.estimate([&](const Costs& costs) {
      const Split s = of_.split(costs);
      return s.lost > 0 ? s.own() / s.lost : 0;
    });
    verdict.parts = {{causes_.allocator_cause(verdict), verdict.allocator_share},
                     {Cause::kCpuQuota, of_.share(&Split::quota)},
                     {Cause::kMemoryBandwidth, of_.share(&Split::machine)},
                     {causes_.own_cause(verdict), own}};
    std::erase_if(verdict.parts, [](const Part& part) { return part.share.value < 0.01; });
    std::ranges::sort(verdict.parts, std::ranges::greater{}, [](const Part& part) { return part.share.value; });
  }

  [[nodiscard]] static bool loses(const Verdict& verdict) {
    return verdict.lost.value >= kLosesFrom && verdict.lost.low >= kSurelyLosesFrom;
  }

  [[nodiscard]] Doubt doubt_of_own_part(const Verdict& verdict) const {
    if (!loses(verdict)) return verdict.disturbance > kBusyFrom ? Doubt::kBusyMachine : Doubt::kChance;
    if (verdict.disturbance > kBusyFrom) return Doubt::kBusyMachine;
    return causes_.was_copied() || !experiment_.can_be_copied ? Doubt::kChance : Doubt::kNoProcesses;
  }

  // One thread cannot lose scaling. What its malloc does can cost it time all the same.
  [[nodiscard]] bool has_one_thread() const {
    return experiment_.most_threads == 1 && (of_.recorded == nullptr || of_.recorded->threads <= 1) &&
           of_.all->setting.cpus > 1 && busy_cpus(*of_.all) <= kOneBusy;
  }
  [[nodiscard]] Cause cause_of_one_thread(const Verdict& verdict) const {
    if (causes_.time_of_faults(verdict) > 0) return Cause::kPageFaults;
    return causes_.is_bloated(verdict) ? Cause::kArenaBloat : Cause::kSerial;
  }

  // Threads that share cache lines and those that share the memory are told apart by processes that share nothing. Where
  // these differ from one trial to the next (CPUs that are threads of one core at times), either may be chance.
  [[nodiscard]] static bool is_told_by_copies(Cause cause) {
    return cause == Cause::kOwnSharing || cause == Cause::kMemoryBandwidth;
  }
  [[nodiscard]] static bool is_sure_part(const Verdict& verdict) {
    return std::ranges::any_of(
        verdict.parts, [&](const Part& part) { return part.cause == verdict.cause && part.share.low >= kSurePartFrom; });
  }

  // The program as it is was slow in its trials.
  static void withdraw_advice(Verdict& verdict) {
    for (Fix& fix : verdict.fixes) fix.helps = false;
    verdict.best_fix.reset();
  }

  static void doubt(Verdict& verdict, Doubt doubt) {
    if (verdict.cause != Cause::kUndecided) verdict.suspected = verdict.cause;
    verdict.cause = Cause::kUndecided;
    verdict.doubt = doubt;
  }

  [[nodiscard]] Cause cause(const Verdict& verdict) const {
    if (!loses(verdict)) return cause_without_loss(verdict);
    const Cause kind = causes_.allocator_cause(verdict);
    const Estimate& allocator = verdict.allocator_share;
    const bool surely = allocator.value >= kPartFrom && allocator.low >= kSurePartFrom;
    // A little time is lost, much memory is held: that is what to mend first. The locks of arenas and their memory have the
    // same cure.
    const bool is_of_arenas = kind == Cause::kArenaBloat || kind == Cause::kAllocatorLock || kind == Cause::kRemoteFrees;
    const bool is_little_time = verdict.lost.value < kScalesBelow && (!surely || is_of_arenas);
    if (is_little_time && causes_.is_bloated(verdict)) return Cause::kArenaBloat;
    if (surely && allocator.value >= kWholeFrom) return kind;
    if (causes_.faults_take_more_than_is_lost(verdict)) return Cause::kPageFaults;
    Part greatest;
    for (const Part& part : verdict.parts) {
      if (part.cause != kind && part.share.value > greatest.share.value) greatest = part;
    }
    const bool is_mixed =
        greatest.cause != Cause::kUndecided && greatest.share.value >= kPartFrom && greatest.share.low >= kSurePartFrom;
    if (surely) return is_mixed ? Cause::kMixed : kind;
    // It scales as well as processes that share nothing.
    if (greatest.cause == Cause::kMemoryBandwidth && surely_scales(verdict)) return Cause::kNone;
    return greatest.share.value > 0 ? greatest.cause : Cause::kUndecided;
  }

  // That a loss was not found does not mean that there is none: it is excluded only by trials that were repeated, and by
  // limits that leave no room for it.
  [[nodiscard]] bool surely_scales(const Verdict& verdict) const {
    return std::min(of_.alone->trials.size(), of_.all->trials.size()) >= kTrialsToAcquit && verdict.lost.high < kScalesBelow;
  }
  [[nodiscard]] Cause cause_without_loss(const Verdict& verdict) const {
    if (verdict.lost.value < kScalesBelow && verdict.lost.high < kMemoryAloneBelow && causes_.is_bloated(verdict))
      return Cause::kArenaBloat;
    if (causes_.faults_take_more_than_is_lost(verdict)) return Cause::kPageFaults;
    if (!surely_scales(verdict)) return Cause::kUndecided;
    return causes_.time_of_faults(verdict) > 0 ? Cause::kPageFaults : Cause::kNone;
  }

  // Without a second setting the only thing that can be said is that there is one CPU for many threads, or much memory.
  [[nodiscard]] Cause cause_without_comparison(const Verdict& verdict) const {
    if (experiment_.most_threads > experiment_.machine_cpus && experiment_.machine_cpus < experiment_.online_cpus)
      return Cause::kCpuQuota;
    return causes_.is_bloated(verdict) ? Cause::kArenaBloat : Cause::kUndecided;
  }

  const Experiment experiment_;
  Losses of_;
  Causes causes_;
};

}  // namespace

std::string_view name_of(Doubt doubt) noexcept {
  static constexpr std::array<std::string_view, kDoubts> kDoubtNames{
      "none", "chance", "busy-machine", "no-processes", "no-padding", "no-comparison", "contradiction"};
  return kDoubtNames[static_cast<std::size_t>(doubt)];
}

std::string_view name_of(Basis basis) noexcept {
  static constexpr std::array<std::string_view, 3> kBasisNames{"time", "counts", "both"};
  return kBasisNames[static_cast<std::size_t>(basis)];
}

std::string_view name_of(Cause cause) noexcept { return kCauseNames[static_cast<std::size_t>(cause)]; }

std::optional<Cause> cause_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(kCauseNames, name);
  if (found == kCauseNames.end()) return std::nullopt;
  return static_cast<Cause>(found - kCauseNames.begin());
}

bool blames_allocator(Cause cause) noexcept {
  switch (cause) {
    case Cause::kAllocatorLock:
    case Cause::kRemoteFrees:
    case Cause::kAllocatorFalseSharing:
    case Cause::kPageFaults:
    case Cause::kArenaBloat:
    case Cause::kMixed: return true;
    default: return false;
  }
}

bool explains_loss(const Verdict& verdict) noexcept {
  return std::ranges::any_of(verdict.parts, [&](const Part& part) { return part.cause == verdict.cause; });
}

Verdict verdict_of(const Experiment& experiment, const Attribution* recorded) {
  Verdict verdict = Judge(experiment, recorded).verdict();
  if (!experiment.work_is_guessed || verdict.cause == Cause::kUndecided) return verdict;
  if (!experiment.work_grows && verdict.cause != Cause::kOwnSharing) return verdict;
  // Threads that spin or that share cache lines need more CPU time, as threads with more work do. Only what both readings
  // say is said.
  Experiment otherwise = experiment;
  otherwise.work_grows = !experiment.work_grows;
  if (Judge(otherwise, recorded).verdict().cause == verdict.cause) return verdict;
  verdict.contradictions.push_back(Contradiction::kNoLossButLost);
  verdict.suspected = std::exchange(verdict.cause, Cause::kUndecided);
  verdict.rests_on.reset();
  verdict.doubt = Doubt::kContradiction;
  return verdict;
}

}  // namespace freehold::doctor
