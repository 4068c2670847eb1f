#include "freehold/doctor/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "freehold/doctor/attribution.hpp"
#include "freehold/doctor/resampled.hpp"
#include "freehold/doctor/scalability.hpp"

namespace freehold::doctor {
namespace {

// What counts as something. Shares are of what is lost unless said.
constexpr double kLosesFrom = 0.12;        // of the time on all CPUs: less is nothing to worry about
constexpr double kSurelyLosesFrom = 0.04;  // the same, of the lower limit
constexpr double kPartFrom = 0.25;         // a part that is named
constexpr double kSurePartFrom = 0.10;     // its lower limit
constexpr double kWholeFrom = 0.75;        // a part that is the whole answer
constexpr double kGainFrom = 1.05;         // a fix that is worth it
constexpr double kSureGainFrom = 1.02;     // and surely more than this
constexpr double kSure = 0.99;             // of the draws: several fixes are tried, one of them is lucky
constexpr double kPaddingExplains = 0.6;   // of the allocator's part: lines that blocks share
constexpr double kManyRemote = 0.4;        // of the frees
constexpr double kInMalloc = 0.05;         // of the time: what happens there can be the cause
constexpr double kAsleepInMalloc = 0.005;  // of the threads' lives: they wait for each other there
constexpr double kMoreWork = 1.3;          // CPU time on all CPUs, of that on one: they do so without sleeping
constexpr double kMoreWorkRemotely = 1.1;  // the same where blocks are freed by others, which is costly by itself
constexpr double kSystemTime = 0.25;       // of the CPU time: the kernel is busy for the program
constexpr double kFewerFaults = 0.5;       // that are left with another allocator
constexpr double kSystemTimeAlone = 0.1;   // the same on one CPU, where it is not threads that wake each other
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
      : experiment_(experiment), recorded_(recorded), costs_(experiment) {}

  Verdict verdict() {
    Verdict verdict;
    find_ends(verdict);
    if (all_ == nullptr) return verdict;
    judge_fixes(verdict);
    judge_noise(verdict);
    fit_laws(verdict);
    if (alone_ == nullptr) {
      verdict.cause = cause_without_comparison(verdict);
      return verdict;
    }
    if (!is_credible(allocator_cause(verdict))) best_allocator_ = 0;
    judge_loss(verdict);
    verdict.cause = cause(verdict);
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
    return costs(*all) - ideal(costs(alone != nullptr ? *alone : *alone_));
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
    const double stolen = median_of(*all_, [](const Trial& trial) { return trial.stolen_s / trial.wall_s; });
    verdict.noisy =
        experiment_.control.compute > kNoisyControl || costs_.usual_spread() > kNoisySpread || stolen > kThrottled;
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
      if (only_growth && is_bloated(verdict) && system_share(*alone_) >= kSystemTimeAlone) return Cause::kArenaBloat;
      if (is_faulting(*all_)) return Cause::kPageFaults;
    }
    if (recorded_ != nullptr && recorded_->remote_share >= kManyRemote) return Cause::kRemoteFrees;
    return Cause::kAllocatorLock;
  }
  // Whether the recording bears out what the trials say. Another allocator puts everything elsewhere, also what the program
  // shares by itself, and can be faster by that, or by chance.
  [[nodiscard]] bool is_credible(Cause kind) const {
    if (recorded_ == nullptr || best_allocator_ == 0) return true;
    const double more_work = cpu_seconds(*all_) / std::max(1e-9, cpu_seconds(*alone_));
    const bool is_hot = recorded_->cpu_share + recorded_->blocked_share >= kInMalloc;
    switch (kind) {
      case Cause::kAllocatorLock: return is_hot && (recorded_->blocked_share >= kAsleepInMalloc || more_work >= kMoreWork);
      case Cause::kRemoteFrees:
        return is_hot && (recorded_->blocked_share >= kAsleepInMalloc || more_work >= kMoreWorkRemotely);
      case Cause::kAllocatorFalseSharing: {
        // Whose blocks are neighbours is not always seen: who frees them may not be who uses them.
        if (recorded_->lines_shared > 0) return true;
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

  // Of what kind the rest is: seen with the allocator out of the way.
  [[nodiscard]] Cause own_cause(const Verdict& verdict) const {
    const Cell* const best = cell(best_allocator_, all_->setting);
    const Cell& rest = best != nullptr ? *best : *all_;
    const double idle = median_of(
        rest, [&](const Trial& trial) { return std::max(0.0, 1 - trial.cpu_s() / (trial.wall_s * all_->setting.width())); });
    const double lost = verdict.lost.value;
    if (recorded_ != nullptr && recorded_->lock_wait_share >= kLockWaits * std::min(lost, 0.5)) return Cause::kOwnLock;
    if (is_faulting(rest)) return Cause::kOwnPageFaults;
    return idle >= kIdleShare * lost ? Cause::kSerial : Cause::kOwnSharing;
  }

  [[nodiscard]] Cause cause(const Verdict& verdict) const {
    if (!loses(verdict)) {
      if (verdict.lost.value >= 2 * kLosesFrom) return Cause::kUndecided;
      return is_bloated(verdict) ? Cause::kArenaBloat : Cause::kNone;
    }
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
    if (verdict.lost.value < 2 * kLosesFrom && is_bloated(verdict)) return Cause::kArenaBloat;
    return greatest.share.value > 0 ? greatest.cause : Cause::kUndecided;
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

  const Experiment& experiment_;
  const Attribution* recorded_;
  Resampled costs_;
  const Cell* alone_ = nullptr;     // fewest CPUs, the program as it is; null: only one setting
  const Cell* all_ = nullptr;       // all CPUs
  std::size_t best_allocator_ = 0;  // 0: none helps
};

}  // namespace

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
  return Examination(experiment, recorded).verdict();
}

}  // namespace freehold::doctor
