#include "freehold/doctor/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "freehold/doctor/attribution.hpp"
#include "freehold/doctor/bound.hpp"
#include "freehold/doctor/consistency.hpp"
#include "freehold/doctor/resampled.hpp"
#include "freehold/doctor/scalability.hpp"

namespace freehold::doctor {
namespace {

// What counts as something. Shares are of what is lost unless said.
constexpr double kLosesFrom = 0.12;         // of the time on all CPUs: less is nothing to worry about
constexpr double kSurelyLosesFrom = 0.04;   // the same, of the lower limit
constexpr double kScalesBelow = 0.24;       // the same, of the upper limit: a program that scales loses surely less
constexpr std::size_t kTrialsToAcquit = 2;  // of each of the two settings: one trial alone excludes nothing
constexpr double kMemoryAloneBelow = 0.5;   // of the time is lost at most, where memory is the cause and time is not
constexpr double kPartFrom = 0.25;          // a part that is named
constexpr double kSurePartFrom = 0.10;      // its lower limit
constexpr double kWholeFrom = 0.75;         // a part that is the whole answer
constexpr double kGainFrom = 1.05;          // a fix that is worth it
constexpr double kSureGainFrom = 1.02;      // and surely more than this
constexpr double kSure = 0.99;              // of the draws: several fixes are tried, one of them is lucky
constexpr double kPaddingExplains = 0.6;    // of the allocator's part: lines that blocks share
constexpr double kManyRemote = 0.4;         // of the frees
constexpr double kInMalloc = 0.05;          // of the time: what happens there can be the cause
constexpr double kAsleepInMalloc = 0.005;   // of the threads' lives: they wait for each other there
constexpr double kSystemTime = 0.25;        // of the CPU time: the kernel is busy for the program
constexpr double kFewerFaults = 0.5;        // that are left with another allocator
constexpr double kSystemTimeAlone = 0.1;    // the same on one CPU, where it is not threads that wake each other
constexpr double kFaultsPerSecond = 5000;
constexpr double kPageBytes = 4096;
constexpr double kGrownOnce = 1.5;        // of the peak memory was faulted in: it is not given back and fetched again
constexpr double kLockWaits = 0.5;        // of the time that its part of the CPUs was lost
constexpr double kIdleShare = 0.5;        // of what is lost: CPUs had nothing to do
constexpr double kThrottled = 0.1;        // of the time: the quota is what limits it
constexpr double kBloat = 0.67;           // of the memory is enough with another allocator
constexpr double kBloatBytes = 32 << 20;  // and it is worth a word
constexpr double kNoisyControl = 1.15;
constexpr double kNoisySpread = 0.12;
constexpr double kSureOnBusyMachine = 0.5;  // of what is lost, the lower limit of a part that is the answer there
constexpr double kSureGainOnBusyMachine = 1.15;
constexpr double kMostDisturbance = 0.3;  // of the CPUs was others': what was seen is not what the program does by itself
constexpr double kSureMixOnBusyMachine = 0.2;  // the lower limit of each of two parts there
constexpr double kAsManyFaults = 0.8;          // of the page faults are still there: another allocator does not change them
constexpr double kOwnWaits = 0.1;              // of the threads' lives, in locks of the program's
constexpr double kGrowsAway = 0.3;      // of what another allocator saves: CPU time that it does not need only on all CPUs
constexpr double kBloatIsKernel = 0.3;  // of what another allocator saves: the kernel's time for memory that is fetched
constexpr double kMoreWorkIfShared = 0.25;  // of what is lost: CPU time beyond that on one CPU
constexpr double kBesideIdleness = 0.5;     // of the idle CPUs: time in loops that spin, which is why others idle
constexpr double kOneBusy = 1.05;           // CPUs that one thread can keep busy
constexpr double kFaultingGain = 1.25;      // surely, with another allocator: page faults alone are worth a verdict

constexpr std::array<std::string_view, kCauses> kNames{
    "none",     "allocator-lock", "remote-frees",    "allocator-false-sharing", "page-faults", "arena-bloat",
    "own-lock", "own-sharing",    "own-page-faults", "memory-bandwidth",        "cpu-quota",   "serial",
    "mixed",    "undecided"};

template <class Field>
double median_of(const Cell& cell, const Field& field) {
  std::vector<double> values;
  for (const Trial& trial : cell.trials) values.push_back(static_cast<double>(std::invoke(field, trial)));
  return median(std::move(values));
}
double system_share(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.cpu_s() > 0 ? trial.system_s / trial.cpu_s() : 0; });
}
double faults(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.page_faults; });
}
double faults_per_second(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return static_cast<double>(trial.page_faults) / trial.wall_s; });
}
double cpu_seconds(const Cell& cell) { return median_of(cell, &Trial::cpu_s); }
double peak_bytes(const Cell& cell) {
  return median_of(cell, [](const Trial& trial) { return trial.peak_rss_bytes; });
}

// Where the time on all CPUs goes that is beyond the ideal, in the unit of costs.
struct Split {
  double all = 0;        // what the program takes
  double lost = 0;       // of that, beyond the ideal
  double quota = 0;      // of what is lost: CPUs that it never had
  double machine = 0;    // processes that share nothing lose it as well
  double allocator = 0;  // not lost under the best other allocator
  [[nodiscard]] double own() const noexcept { return std::max(0.0, lost - quota - machine - allocator); }
};

class Examination {
 public:
  Examination(const Experiment& experiment, const Attribution* recorded)
      : experiment_(without_disturbed(experiment)), recorded_(recorded), costs_(experiment_) {}

  Verdict verdict() {
    Verdict verdict;
    find_ends(verdict);
    if (all_ == nullptr) return verdict;
    judge_fixes(verdict);
    judge_noise(verdict);
    fit_laws(verdict);
    verdict.one_thread = has_one_thread();
    if (recorded_ != nullptr)
      verdict.most_gain = bound_of(experiment_, *all_, *recorded_, verdict.fixes, costs_.usual_spread());
    if (alone_ == nullptr) {
      verdict.cause = cause_without_comparison(verdict);
      if (verdict.cause == Cause::kUndecided) verdict.doubt = Doubt::kNoComparison;
      return verdict;
    }
    if (verdict.one_thread || !is_credible(allocator_cause(verdict)) || is_only_faster()) best_allocator_ = 0;
    judge_loss(verdict);
    verdict.cause = verdict.one_thread ? cause_of_one_thread(verdict) : cause(verdict);
    if (verdict.cause == Cause::kUndecided && verdict.doubt == Doubt::kNone) verdict.doubt = doubt_of_own_part(verdict);
    if (verdict.cause != Cause::kUndecided && verdict.disturbance > kBusyFrom && !stands_on_busy_machine(verdict))
      doubt(verdict, Doubt::kBusyMachine);
    verdict.contradictions = contradictions_in(experiment_, verdict);
    if (!verdict.contradictions.empty()) doubt(verdict, Doubt::kContradiction);
    return verdict;
  }

 private:
  using Costs = Resampled::Costs;

  [[nodiscard]] const Cell* cell(std::size_t variant, const Setting& setting) const {
    const Cell* const found = experiment_.find(variant, setting);
    return found != nullptr && !found->trials.empty() ? found : nullptr;
  }

  // Fewest and most CPUs; among settings that can use as many, the one with most threads.
  void find_ends(Verdict& verdict) {
    for (const Setting& setting : experiment_.sweep()) {
      const Cell* const found = cell(0, setting);
      if (found == nullptr) continue;
      if (alone_ == nullptr) alone_ = found;
      all_ = found;
    }
    if (all_ == nullptr) return;
    if (alone_->setting.width() == all_->setting.width() && alone_->setting.threads == all_->setting.threads)
      alone_ = nullptr;
    verdict.all = all_->setting;
    verdict.alone = alone_ != nullptr ? alone_->setting : all_->setting;
  }

  // What the program would take on all CPUs if it lost nothing.
  [[nodiscard]] double ideal(double cost_alone) const { return ideal_on(cost_alone, all_->setting.width()); }
  [[nodiscard]] double ideal_on(double cost_alone, double cpus) const {
    return experiment_.work_grows ? cost_alone : cost_alone * alone_->setting.width() / cpus;
  }

  // CPUs that the program could use of those that it was given.
  [[nodiscard]] double allowed_cpus() const {
    double cpus = all_->setting.width();
    if (experiment_.own_cpus > 0) cpus = std::min<double>(cpus, experiment_.own_cpus);
    if (experiment_.quota_cpus > 0) cpus = std::min(cpus, experiment_.quota_cpus);
    const double throttled = median_of(*all_, [](const Trial& trial) { return trial.throttled_s / trial.wall_s; });
    if (throttled > kThrottled)
      cpus = std::min(cpus, median_of(*all_, [](const Trial& trial) { return trial.cpu_s() / trial.wall_s; }));
    return cpus;
  }

  // How much more CPU time one copy needs among as many as there are CPUs than alone: whoever waits for memory is busy. The
  // time that passes would say the same, but also that other programs had the CPUs meanwhile.
  [[nodiscard]] double slowdown_of_copies() const {
    const auto copies = std::ranges::find_if(
        experiment_.cells, [](const Cell& of) { return of.variant == 0 && of.setting.copies > 1 && !of.trials.empty(); });
    if (copies == experiment_.cells.end()) return 1;
    Setting one = copies->setting;
    one.copies = 1;
    const Cell* const single = cell(0, one);
    const double alone = median_of(single != nullptr ? *single : *alone_, &Trial::cpu_s);
    return alone > 0 ? std::max(1.0, median_of(*copies, &Trial::cpu_s) / alone) : 1;
  }

  // What a variant loses on all CPUs. Without its own time on one CPU the program's must do.
  [[nodiscard]] double lost_with(const Costs& costs, std::size_t variant) const {
    const Cell* const all = cell(variant, all_->setting);
    const Cell* const alone = cell(variant, alone_->setting);
    const double cost_alone = costs(alone != nullptr ? *alone : *alone_);
    const double lost = costs(*all) - ideal(cost_alone);
    return waits_for_own_locks() ? lost * costs(*alone_) / cost_alone : lost;
  }
  // Whether the best other allocator makes the program faster, but no better at using CPUs: a malloc that takes less time on
  // one CPU, too, explains nothing of the rest that is lost.
  [[nodiscard]] bool is_only_faster() const {
    if (best_allocator_ == 0) return false;
    const Costs costs = costs_.measured();
    const double lost = lost_with(costs, 0), left = lost_with(costs, best_allocator_);
    const Cell* const alone = cell(best_allocator_, alone_->setting);
    if (alone == nullptr || lost <= 0 || (lost - left) / lost >= kWholeFrom) return false;
    return (lost - left * costs(*alone_) / costs(*alone)) / lost < kPartFrom;
  }
  // Threads that queue for a lock of the program's are served faster by a malloc that is faster while they hold it, on one
  // CPU as on all. That is a gain, but no scaling: then losses are compared relative to the time on one CPU.
  [[nodiscard]] bool waits_for_own_locks() const {
    return recorded_ != nullptr && recorded_->lock_wait_share >= kOwnWaits &&
           recorded_->lock_wait_share > recorded_->blocked_share;
  }

  [[nodiscard]] Split split(const Costs& costs) const {
    Split split;
    split.all = costs(*all_);
    const double ideal_cost = ideal(costs(*alone_));
    split.lost = std::max(0.0, split.all - ideal_cost);
    const double allowed = allowed_cpus();
    if (allowed < 0.95 * all_->setting.width()) {
      // Copies are confined in the same way, so that they would tell the same story twice.
      split.quota = std::min(split.lost, ideal_on(costs(*alone_), allowed) - ideal_cost);
    }
    if (best_allocator_ != 0)
      split.allocator =
          std::clamp(split.lost - std::max(0.0, lost_with(costs, best_allocator_)), 0.0, split.lost - split.quota);
    if (split.quota == 0)
      split.machine = std::clamp(ideal_cost * (slowdown_of_copies() - 1), 0.0, split.lost - split.allocator);
    return split;
  }
  [[nodiscard]] Estimate share(double Split::* part) const {
    return costs_.estimate([&](const Costs& costs) {
      const Split s = split(costs);
      return s.lost > 0 ? s.*part / s.lost : 0;
    });
  }

  void judge_fixes(Verdict& verdict) {
    for (std::size_t v = 1; v < experiment_.variants.size(); ++v) {
      Fix fix;
      fix.variant = v;
      const Cell* const with = cell(v, all_->setting);
      fix.failed =
          std::ranges::any_of(experiment_.cells, [v](const Cell& of) { return of.variant == v && !of.failure.empty(); });
      if (with == nullptr && !fix.failed) continue;
      if (with != nullptr) {
        fix.gain = costs_.estimate([&](const Costs& costs) { return costs(*all_) / costs(*with); });
        const double ratio = peak_bytes(*with) / std::max(1.0, peak_bytes(*all_));
        fix.memory = {ratio, ratio, ratio};
        fix.helps = !fix.failed && fix.gain.value >= kGainFrom && costs_.confidence([&](const Costs& costs) {
          return costs(*all_) / costs(*with) >= kSureGainFrom;
        }) >= kSure;
      }
      verdict.fixes.push_back(fix);
    }
    for (std::size_t i = 0; i < verdict.fixes.size(); ++i) {
      const Fix& fix = verdict.fixes[i];
      if (fix.helps && (!verdict.best_fix || fix.gain.value > verdict.fixes[*verdict.best_fix].gain.value))
        verdict.best_fix = i;
    }
    prefer_freehold(verdict);
    choose_allocator(verdict);
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
    if (alone_ == nullptr) return;
    double least = 0;
    for (const Fix& fix : verdict.fixes) {
      if (!fix.helps) continue;
      const double lost = costs_.estimate([&](const Costs& costs) { return lost_with(costs, fix.variant); }).value;
      if (best_allocator_ == 0 || lost < least) {
        best_allocator_ = fix.variant;
        least = lost;
      }
    }
  }

  void judge_noise(Verdict& verdict) const {
    const auto taken = [](const Cell* of) {
      return of == nullptr ? 0 : median_of(*of, [of](const Trial& trial) { return taken_share(trial, of->setting); });
    };
    verdict.disturbance = std::max(taken(all_), taken(alone_));
    for (const Fix& fix : verdict.fixes) {
      if (fix.helps) verdict.disturbance = std::max(verdict.disturbance, taken(cell(fix.variant, all_->setting)));
    }
    verdict.noisy = experiment_.control.compute > kNoisyControl || costs_.usual_spread() > kNoisySpread ||
                    verdict.disturbance > kBusyFrom;
  }

  void fit_laws(Verdict& verdict) const {
    for (std::size_t v = 0; v < experiment_.variants.size(); ++v) {
      const Cell* const one = alone_ == nullptr ? nullptr : cell(v, alone_->setting);
      if (one == nullptr || one->setting.width() != 1) continue;
      std::vector<Speed> speeds;
      for (const Setting& setting : experiment_.sweep()) {
        const Cell* const at = cell(v, setting);
        if (at == nullptr || setting.threads > setting.cpus) continue;  // the law knows nothing of threads that take turns
        const double ratio = median_of(*one, &Trial::cost) / median_of(*at, &Trial::cost);
        speeds.push_back({double(setting.width()), experiment_.work_grows ? ratio * setting.width() : ratio});
      }
      if (speeds.size() < 2) continue;
      verdict.scalability.push_back(fit(speeds));
      verdict.scalability.back().variant = v;
    }
  }

  void judge_loss(Verdict& verdict) const {
    const double width = all_->setting.width();
    verdict.ideal_speedup = width / alone_->setting.width();
    verdict.speedup = costs_.estimate([&](const Costs& costs) {
      return costs(*alone_) / costs(*all_) * (experiment_.work_grows ? verdict.ideal_speedup : 1);
    });
    verdict.lost = costs_.estimate([&](const Costs& costs) {
      const Split s = split(costs);
      return s.lost / s.all;
    });
    verdict.allocator_share = share(&Split::allocator);
    if (!loses(verdict)) return;
    if (verdict.one_thread) {
      verdict.parts = {{Cause::kSerial, {1, 1, 1}}};
      return;
    }
    const auto own = costs_.estimate([&](const Costs& costs) {
      const Split s = split(costs);
      return s.lost > 0 ? s.own() / s.lost : 0;
    });
    verdict.parts = {{allocator_cause(verdict), verdict.allocator_share},
                     {Cause::kCpuQuota, share(&Split::quota)},
                     {Cause::kMemoryBandwidth, share(&Split::machine)},
                     {own_cause(verdict), own}};
    std::erase_if(verdict.parts, [](const Part& part) { return part.share.value < 0.01; });
    std::ranges::sort(verdict.parts, std::ranges::greater{}, [](const Part& part) { return part.share.value; });
  }

  [[nodiscard]] static bool loses(const Verdict& verdict) {
    return verdict.lost.value >= kLosesFrom && verdict.lost.low >= kSurelyLosesFrom;
  }

  // Of what kind the allocator's part is.
  [[nodiscard]] Cause allocator_cause(const Verdict& verdict) const {
    if (best_allocator_ == 0) return Cause::kAllocatorLock;
    if (padding_explains()) return Cause::kAllocatorFalseSharing;
    const Cell& best = *cell(best_allocator_, all_->setting);
    if (faults(best) <= kFewerFaults * faults(*all_)) {
      // What arenas hold had to be faulted in, once: little time, and most of it the kernel's.
      const bool only_growth = faults(*all_) * kPageBytes <= kGrownOnce * peak_bytes(*all_);
      if (only_growth && is_bloated(verdict) && system_share(*alone_) >= kSystemTimeAlone && is_kernel_time(best))
        return Cause::kArenaBloat;
      if (is_faulting(*all_)) return Cause::kPageFaults;
    }
    if (recorded_ != nullptr && recorded_->remote_share >= kManyRemote) return Cause::kRemoteFrees;
    return Cause::kAllocatorLock;
  }
  // Whether the recording bears out what the trials say. Another allocator puts everything elsewhere, also what the program
  // shares by itself, and can be faster by that, or by chance.
  [[nodiscard]] bool is_credible(Cause kind) const {
    if (recorded_ == nullptr || best_allocator_ == 0) return true;
    const bool is_hot = recorded_->cpu_share + recorded_->blocked_share >= kInMalloc;
    switch (kind) {
      case Cause::kAllocatorLock:
      case Cause::kRemoteFrees: return is_hot && (recorded_->blocked_share >= kAsleepInMalloc || work_grows_away());
      case Cause::kAllocatorFalseSharing: {
        // Whose blocks are neighbours is not always seen: who frees them may not be who uses them.
        if (recorded_->lines_shared > 0) return true;
        if (waits_for_own_locks()) return false;
        const Costs costs = costs_.measured();
        const double lost = lost_with(costs, 0);
        return lost - lost_with(costs, best_allocator_) >= kPaddingExplains * lost;
      }
      default: return true;
    }
  }
  // Whether the kernel's time goes to page faults. Threads that wait for locks need the kernel too, and may have many faults
  // beside, but not on one CPU; a page costs about the same there.
  [[nodiscard]] bool is_faulting(const Cell& on_all) const {
    return faults_per_second(on_all) >= kFaultsPerSecond && system_share(on_all) >= kSystemTime &&
           system_share(*alone_) >= kSystemTimeAlone;
  }
  [[nodiscard]] bool padding_explains() const {
    const Variant* const padded = experiment_.find(Treatment::kPadded);
    if (padded == nullptr) return false;
    const auto variant = static_cast<std::size_t>(padded - experiment_.variants.data());
    if (variant == best_allocator_) return true;
    if (cell(variant, all_->setting) == nullptr) return false;
    const double saved =
        costs_.estimate([&](const Costs& costs) { return lost_with(costs, 0) - lost_with(costs, variant); }).low;
    const double best =
        costs_.estimate([&](const Costs& costs) { return lost_with(costs, 0) - lost_with(costs, best_allocator_); }).value;
    return saved >= kPaddingExplains * best;
  }

  // CPU seconds that the program needs on all CPUs beyond those that it needs alone.
  [[nodiscard]] double more_work(std::size_t variant) const {
    const Cell* const alone = cell(variant, alone_->setting);
    const double grown = experiment_.work_grows ? double(all_->setting.width()) / alone_->setting.width() : 1;
    return cpu_seconds(*cell(variant, all_->setting)) - grown * cpu_seconds(alone != nullptr ? *alone : *alone_);
  }
  // CPU seconds that the best other allocator saves on all CPUs, idle ones included.
  [[nodiscard]] double saved_capacity() const {
    const Costs costs = costs_.measured();
    return (costs(*all_) - costs(*cell(best_allocator_, all_->setting))) / costs(*all_) * median_of(*all_, &Trial::wall_s) *
           all_->setting.width();
  }
  // Whether the work that comes with the CPUs goes with another allocator. Work that stays is the program's own: it may
  // spin, or write shared lines, beside a malloc that is as slow on one CPU.
  [[nodiscard]] bool work_grows_away() const {
    return more_work(0) - more_work(best_allocator_) >= kGrowsAway * saved_capacity();
  }
  // Whether what another allocator saves is the kernel's time.
  [[nodiscard]] bool is_kernel_time(const Cell& best) const {
    return median_of(*all_, &Trial::system_s) - median_of(best, &Trial::system_s) >= kBloatIsKernel * saved_capacity();
  }

  // Of what kind the rest is: seen with the allocator out of the way. A CPU is idle when no thread of the program's is ready
  // to run on it; what others took meanwhile may have been wanted, or not.
  [[nodiscard]] Cause own_cause(const Verdict& verdict) const {
    const Cell* const best = cell(best_allocator_, all_->setting);
    const Cell& rest = best != nullptr ? *best : *all_;
    const auto idle = [&](double taken_counts) {
      return median_of(rest, [&](const Trial& trial) {
        const double used = trial.cpu_s() + taken_counts * trial.taken_s;
        return std::max(0.0, 1 - used / (trial.wall_s * all_->setting.width()));
      });
    };
    const double lost = verdict.lost.value;
    if (recorded_ != nullptr && recorded_->lock_wait_share >= kLockWaits * std::min(lost, 0.5)) return Cause::kOwnLock;
    if (is_faulting(rest)) return Cause::kOwnPageFaults;
    if (const auto seen = cause_in_code(lost, idle(1))) return *seen;
    if (idle(1) >= kIdleShare * lost) return Cause::kSerial;
    if (idle(0) >= kIdleShare * lost) return Cause::kUndecided;
    const double capacity = median_of(*all_, &Trial::wall_s) * all_->setting.width();
    const bool did_more = more_work(0) >= kMoreWorkIfShared * lost * capacity;
    return did_more && (was_copied() || !experiment_.can_be_copied) ? Cause::kOwnSharing : Cause::kUndecided;
  }
  // What the program's instructions say: it spins in loops of its own, or writes lines that other threads write. CPUs idle
  // beside that when some threads are served before others.
  [[nodiscard]] std::optional<Cause> cause_in_code(double lost, double idle) const {
    const CodeGrowth& code = experiment_.code;
    if (!code.known) return std::nullopt;
    const double busy = std::min(1.0, cpu_seconds(*all_) / (median_of(*all_, &Trial::wall_s) * all_->setting.width()));
    const double least = std::max(kMoreWorkIfShared * lost, kBesideIdleness * idle) / std::max(busy, 0.01);
    if (code.spinning >= least && code.spinning >= code.contended) return Cause::kOwnLock;
    if (code.spinning + code.contended + (was_copied() ? code.slowed : 0) >= least) return Cause::kOwnSharing;
    return std::nullopt;
  }
  [[nodiscard]] bool was_copied() const {
    return std::ranges::any_of(
        experiment_.cells, [](const Cell& of) { return of.variant == 0 && of.setting.copies > 1 && !of.trials.empty(); });
  }
  [[nodiscard]] Doubt doubt_of_own_part(const Verdict& verdict) const {
    if (!loses(verdict)) return verdict.disturbance > kBusyFrom ? Doubt::kBusyMachine : Doubt::kChance;
    if (verdict.disturbance > kBusyFrom) return Doubt::kBusyMachine;
    return was_copied() || !experiment_.can_be_copied ? Doubt::kChance : Doubt::kNoProcesses;
  }

  // One thread cannot lose scaling. What its malloc does can cost it time all the same.
  [[nodiscard]] bool has_one_thread() const {
    return experiment_.most_threads == 1 && (recorded_ == nullptr || recorded_->threads <= 1) && all_->setting.cpus > 1 &&
           median_of(*all_, [](const Trial& trial) { return trial.cpu_s() / trial.wall_s; }) <= kOneBusy;
  }
  [[nodiscard]] Cause cause_of_one_thread(const Verdict& verdict) const {
    if (faults_cost_time(verdict)) return Cause::kPageFaults;
    return is_bloated(verdict) ? Cause::kArenaBloat : Cause::kSerial;
  }
  // Whether malloc's page faults take time on one CPU as on all, so that they cost time but no scaling.
  [[nodiscard]] bool faults_cost_time(const Verdict& verdict) const {
    if (!verdict.best_fix) return false;
    const Fix& fix = verdict.fixes[*verdict.best_fix];
    const Cell& with = *cell(fix.variant, all_->setting);
    return fix.gain.low >= kFaultingGain && is_faulting(*all_) && faults(with) <= kFewerFaults * faults(*all_);
  }

  static void doubt(Verdict& verdict, Doubt doubt) {
    if (verdict.cause != Cause::kUndecided) verdict.suspected = verdict.cause;
    verdict.cause = Cause::kUndecided;
    verdict.doubt = doubt;
  }
  // Others had a part of the CPUs. What they delayed is in the limits; what these do not bear out is not said.
  [[nodiscard]] bool stands_on_busy_machine(const Verdict& verdict) const {
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
        if (recorded_ == nullptr) return false;
        break;
      // What does not depend on who else is there: faults are counted, and threads were seen to wait elsewhere than in
      // malloc.
      case Cause::kOwnPageFaults: return surely(kSureOnBusyMachine) && faults_stay();
      case Cause::kOwnLock:
        if (recorded_->cpu_share + recorded_->blocked_share <= kInMalloc) return surely(kSureOnBusyMachine);
        break;
      default: break;
    }
    return surely(kSureOnBusyMachine) && !could_save(Treatment::kFreehold, kSureOnBusyMachine) &&
           !could_save(Treatment::kPadded, kSureOnBusyMachine);
  }
  // Whether the treatment might save so much of what is lost; also if it was not tried.
  [[nodiscard]] bool could_save(Treatment treatment, double share) const {
    const Variant* const found = experiment_.find(treatment);
    if (found == nullptr) return true;
    const auto variant = static_cast<std::size_t>(found - experiment_.variants.data());
    if (cell(variant, all_->setting) == nullptr) return true;
    const double high = costs_
                            .estimate([&](const Costs& costs) {
                              const double lost = lost_with(costs, 0);
                              return lost > 0 ? (lost - lost_with(costs, variant)) / lost : 1;
                            })
                            .high;
    return high >= share;
  }
  // Whether another allocator was tried, and the faults were the same with each.
  [[nodiscard]] bool faults_stay() const {
    const Variant* const found = experiment_.find(Treatment::kFreehold);
    if (found == nullptr) return false;
    const Cell* const with = cell(static_cast<std::size_t>(found - experiment_.variants.data()), all_->setting);
    return with != nullptr && faults(*with) > kAsManyFaults * faults(*all_);
  }
  // Every trial of copies needed more CPU time than any of one alone.
  [[nodiscard]] bool copies_surely_need_more() const {
    double most_alone = 0, least_copied = INFINITY;
    for (const Cell& of : experiment_.cells) {
      if (of.variant != 0) continue;
      for (const Trial& trial : of.trials) {
        if (of.setting == alone_->setting) most_alone = std::max(most_alone, trial.cpu_s());
        if (of.setting.copies > 1) least_copied = std::min(least_copied, trial.cpu_s());
      }
    }
    return std::isfinite(least_copied) && least_copied > most_alone;
  }

  [[nodiscard]] Cause cause(const Verdict& verdict) const {
    if (!loses(verdict)) return cause_without_loss(verdict);
    const Cause kind = allocator_cause(verdict);
    const Estimate& allocator = verdict.allocator_share;
    const bool surely = allocator.value >= kPartFrom && allocator.low >= kSurePartFrom;
    if (surely && allocator.value >= kWholeFrom) return kind;
    Part greatest;
    for (const Part& part : verdict.parts) {
      if (part.cause != kind && part.share.value > greatest.share.value) greatest = part;
    }
    if (surely) return greatest.share.value >= kPartFrom ? Cause::kMixed : kind;
    // A little time is lost, much memory is held: that is what to mend first.
    if (verdict.lost.value < kScalesBelow && is_bloated(verdict)) return Cause::kArenaBloat;
    return greatest.share.value > 0 ? greatest.cause : Cause::kUndecided;
  }

  // That a loss was not found does not mean that there is none: it is excluded only by trials that were repeated, and by
  // limits that leave no room for it.
  [[nodiscard]] bool surely_scales(const Verdict& verdict) const {
    return std::min(alone_->trials.size(), all_->trials.size()) >= kTrialsToAcquit && verdict.lost.high < kScalesBelow;
  }
  [[nodiscard]] Cause cause_without_loss(const Verdict& verdict) const {
    if (verdict.lost.value < kScalesBelow && verdict.lost.high < kMemoryAloneBelow && is_bloated(verdict))
      return Cause::kArenaBloat;
    if (!surely_scales(verdict)) return Cause::kUndecided;
    return faults_cost_time(verdict) ? Cause::kPageFaults : Cause::kNone;
  }

  // Without a second setting the only thing that can be said is that there is one CPU for many threads, or much memory.
  [[nodiscard]] Cause cause_without_comparison(const Verdict& verdict) const {
    if (experiment_.most_threads > experiment_.machine_cpus && experiment_.machine_cpus < experiment_.online_cpus)
      return Cause::kCpuQuota;
    return is_bloated(verdict) ? Cause::kArenaBloat : Cause::kUndecided;
  }

  // Whether arenas hold much more than the program needs: few of them, or another allocator, do with much less.
  [[nodiscard]] bool is_bloated(const Verdict& verdict) const {
    const double bytes = peak_bytes(*all_);
    return std::ranges::any_of(verdict.fixes, [&](const Fix& fix) {
      const Treatment treatment = experiment_.variants[fix.variant].treatment;
      const bool fewer_arenas = treatment == Treatment::kCappedArenas || treatment == Treatment::kFreehold;
      return fewer_arenas && !fix.failed && fix.memory.value > 0 && fix.memory.value <= kBloat &&
             bytes * (1 - fix.memory.value) >= kBloatBytes;
    });
  }

  const Experiment experiment_;
  const Attribution* recorded_;
  Resampled costs_;
  const Cell* alone_ = nullptr;     // fewest CPUs, the program as it is; null: only one setting
  const Cell* all_ = nullptr;       // all CPUs
  std::size_t best_allocator_ = 0;  // 0: none helps
};

}  // namespace

std::string_view name_of(Doubt doubt) noexcept {
  static constexpr std::array<std::string_view, kDoubts> kDoubtNames{
      "none", "chance", "busy-machine", "no-processes", "no-comparison", "contradiction"};
  return kDoubtNames[static_cast<std::size_t>(doubt)];
}

std::string_view name_of(Cause cause) noexcept { return kNames[static_cast<std::size_t>(cause)]; }

std::optional<Cause> cause_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Cause>(found - kNames.begin());
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

Verdict verdict_of(const Experiment& experiment, const Attribution* recorded) {
  Verdict verdict = Examination(experiment, recorded).verdict();
  if (!experiment.work_grows || !experiment.work_is_guessed || verdict.cause == Cause::kUndecided) return verdict;
  // Threads that spin or that share cache lines need more CPU time, as threads with more work do. Only what both readings
  // say is said.
  Experiment shared_work = experiment;
  shared_work.work_grows = false;
  if (Examination(shared_work, recorded).verdict().cause == verdict.cause) return verdict;
  verdict.contradictions.push_back(Contradiction::kNoLossButLost);
  verdict.suspected = std::exchange(verdict.cause, Cause::kUndecided);
  verdict.doubt = Doubt::kContradiction;
  return verdict;
}

}  // namespace freehold::doctor
