// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/consistency.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "tools/doctor/facts/derived.hpp"

namespace freehold::doctor {
namespace {

constexpr double kMuchLost = 0.25;       // share of the time on all CPUs, without doubt: not to be called nothing
constexpr double kMostLost = 0.5;        // the same: not to be called memory that has to be fetched once
constexpr double kHealed = 0.75;         // of what is lost: gone with another allocator, relative to what that takes alone
constexpr double kSureGain = 1.15;       // gain by an allocator that heals
constexpr double kFarFaster = 2;         // surely, with another allocator: the program's own costs it something
constexpr double kAllInMalloc = 0.98;    // share of the time: a malloc that takes none would be so much faster
constexpr double kAllBusy = 0.95;        // share of the CPUs: none idles
constexpr double kMoreThanAlone = 1.05;  // CPU time on all CPUs, of that on one: less is no more
constexpr double kCopiesDoWell = 1.03;   // CPU time of a copy among others, of one alone: less is no more
constexpr double kRounding = 0.02;       // rounding of a share
constexpr double kAlike = 1.4;           // between the most and the least that treatments help
constexpr double kBigPart = 0.5;         // share of what is lost, that a cause alone explains

constexpr std::array<std::string_view, kContradictions> kContradictionNames{"blamed-but-nothing-helps",
                                                                            "innocent-but-another-heals",
                                                                            "loss-without-loss",
                                                                            "no-loss-but-lost",
                                                                            "memory-but-time",
                                                                            "one-thread-waits",
                                                                            "busy-but-idle",
                                                                            "bandwidth-but-copies-do-well",
                                                                            "faults-stay",
                                                                            "shares-do-not-add",
                                                                            "advice-does-not-help",
                                                                            "all-help-alike"};

class Check {
 public:
  Check(const Experiment& experiment, const Verdict& verdict)
      : experiment_(experiment), verdict_(verdict), all_(cell(0, verdict.all)), alone_(cell(0, verdict.alone)) {}

  std::vector<Contradiction> found() {
    if (all_ == nullptr || alone_ == nullptr) return {};
    note(blames_in_vain(), Contradiction::kBlamedButNothingHelps);
    note((is_own() && another_heals()) || padding_heals_sharing() ||
             (verdict_.cause == Cause::kNone && another_is_far_faster()),
         Contradiction::kInnocentButAnotherHeals);
    note(explains_loss() && !(verdict_.lost.value > 0 && verdict_.lost.high > 0), Contradiction::kLossWithoutLoss);
    note(verdict_.cause == Cause::kNone && verdict_.lost.low >= kMuchLost && !verdict_.one_thread,
         Contradiction::kNoLossButLost);
    note(verdict_.cause == Cause::kArenaBloat && verdict_.lost.low >= kMostLost && !verdict_.one_thread,
         Contradiction::kMemoryButTime);
    note(verdict_.one_thread && waits_for_others(), Contradiction::kOneThreadWaits);
    note(says_idle_and_is_busy() || says_busy_and_did_no_more(), Contradiction::kBusyButIdle);
    note(verdict_.cause == Cause::kMemoryBandwidth && copies_do_well(), Contradiction::kBandwidthButCopiesDoWell);
    note(verdict_.cause == Cause::kPageFaults && faults_stay(), Contradiction::kFaultsStay);
    note(!shares_add(), Contradiction::kSharesDoNotAdd);
    note(bad_advice(), Contradiction::kAdviceDoesNotHelp);
    note(!verdict_.one_thread && all_help_alike(), Contradiction::kAllHelpAlike);
    return std::move(found_);
  }

 private:
  void note(bool is_so, Contradiction what) {
    if (is_so) found_.push_back(what);
  }
  [[nodiscard]] const Cell* cell(std::size_t variant, const Setting& setting) const {
    return measured(experiment_, variant, setting);
  }
  // What the program takes on all CPUs, of what it would if it scaled. 1: it does. Without its own time alone, the
  // program's.
  [[nodiscard]] double excess(std::size_t variant) const {
    const Cell* const all = cell(variant, verdict_.all);
    if (all == nullptr) return 0;
    const Cell* const own = cell(variant, verdict_.alone);
    const double alone = cost(own != nullptr ? *own : *alone_);
    return cost(*all) / (alone * growth_of_work(experiment_, *all_) / verdict_.ideal_speedup);
  }

  [[nodiscard]] bool explains_loss() const {
    switch (verdict_.cause) {
      case Cause::kNone:
      case Cause::kArenaBloat:
      case Cause::kUndecided: return false;
      // They can cost time on one CPU as on all.
      case Cause::kPageFaults: return !verdict_.one_thread && freehold::doctor::explains_loss(verdict_);
      default: return !verdict_.one_thread;
    }
  }
  [[nodiscard]] bool is_own() const { return explains_loss() && !blames_allocator(verdict_.cause); }
  [[nodiscard]] bool waits_for_others() const {
    switch (verdict_.cause) {
      case Cause::kAllocatorLock:
      case Cause::kRemoteFrees:
      case Cause::kAllocatorFalseSharing:
      case Cause::kOwnLock:
      case Cause::kOwnSharing:
      case Cause::kMixed: return true;
      default: return false;
    }
  }
  [[nodiscard]] bool any_helps() const { return std::ranges::any_of(verdict_.fixes, &Fix::helps); }
  [[nodiscard]] bool blames_in_vain() const {
    return blames_allocator(verdict_.cause) && verdict_.cause != Cause::kArenaBloat && !any_helps();
  }
  [[nodiscard]] bool another_heals() const {
    if (verdict_.cause == Cause::kCpuQuota) return false;
    const double excess_now = excess(0) - 1;
    if (is_own_by_samples(excess_now)) return false;
    return std::ranges::any_of(verdict_.fixes, [&](const Fix& fix) {
      return fix.helps && fix.gain.low >= kSureGain && cell(fix.variant, verdict_.alone) != nullptr &&
             excess(fix.variant) - 1 <= (1 - kHealed) * excess_now;
    });
  }
  // Data of the program's own lies as it did when each of its blocks is a cache line longer.
  [[nodiscard]] bool padding_heals_sharing() const {
    return verdict_.cause == Cause::kOwnSharing && std::ranges::any_of(verdict_.fixes, [&](const Fix& fix) {
             return fix.helps && fix.gain.low >= kFarFaster &&
                    experiment_.variants[fix.variant].treatment == Treatment::kPadded;
           });
  }
  // The time that is lost was seen at the program's own instructions, and blocks that share no line lose it as well.
  [[nodiscard]] bool is_own_by_samples(double excess_now) const {
    const Variant* const padded = experiment_.find(Treatment::kPadded);
    if (padded == nullptr || !grows_outside_malloc(experiment_.code)) return false;
    const auto variant = static_cast<std::size_t>(padded - experiment_.variants.data());
    return cell(variant, verdict_.alone) != nullptr && excess(variant) - 1 >= kHealed * excess_now;
  }
  // Surely, and by more than the time that was seen in malloc.
  [[nodiscard]] bool another_is_far_faster() const {
    const CodeGrowth& code = experiment_.code;
    const double least = std::max(kFarFaster, code.known ? 1 / (1 - std::min(code.in_malloc, kAllInMalloc)) : 0);
    return std::ranges::any_of(verdict_.fixes, [&](const Fix& fix) { return fix.helps && fix.gain.low >= least; });
  }
  [[nodiscard]] bool is_whole(Cause cause) const {
    return verdict_.cause == cause && !verdict_.one_thread && std::ranges::any_of(verdict_.parts, [&](const Part& part) {
             return part.cause == cause && part.share.value >= kBigPart;
           });
  }
  // CPUs that are said to idle, though the program never left one idle; and the other way round.
  [[nodiscard]] bool says_idle_and_is_busy() const {
    const double capacity = median_of(*all_, &Trial::wall_s) * verdict_.all.width();
    return is_whole(Cause::kSerial) && !any_helps() &&
           cpu_seconds(*all_) >= (kAllBusy + spun_share(experiment_, *all_)) * capacity;
  }
  [[nodiscard]] bool says_busy_and_did_no_more() const {
    const double alone = cpu_seconds(*alone_) * growth_of_work(experiment_, *all_);
    return is_whole(Cause::kOwnSharing) && !any_helps() && cpu_seconds(*all_) < kMoreThanAlone * alone;
  }
  [[nodiscard]] bool copies_do_well() const {
    const auto slowdown = slowdown_of_copies(experiment_);
    return slowdown && slowdown->ratio < kCopiesDoWell;
  }
  [[nodiscard]] bool faults_stay() const {
    return std::ranges::none_of(verdict_.fixes, [&](const Fix& fix) {
      const Cell* const with = cell(fix.variant, verdict_.all);
      return fix.helps && with != nullptr && page_faults(*with) < kAsManyFaults * page_faults(*all_);
    });
  }
  [[nodiscard]] bool shares_add() const {
    double sum = 0;
    for (const Part& part : verdict_.parts) {
      if (part.share.value < -kRounding || part.share.value > 1 + kRounding) return false;
      sum += part.share.value;
    }
    return sum <= 1 + kRounding && verdict_.allocator_share.value <= 1 + kRounding;
  }
  [[nodiscard]] bool bad_advice() const {
    if (!verdict_.best_fix) return false;
    const Fix& fix = verdict_.fixes.at(*verdict_.best_fix);
    return !fix.helps || fix.failed || fix.gain.value <= 1;
  }

  // Each treatment asks another question; an answer that is the same to all is none.
  [[nodiscard]] bool all_help_alike() const {
    bool padded = false, arenas = false, another = false;
    double least = INFINITY, most = 0;
    for (const Fix& fix : verdict_.fixes) {
      const Treatment treatment = experiment_.variants[fix.variant].treatment;
      if (fix.failed || fix.gain.value <= 0) continue;
      if (!fix.helps) return false;
      padded |= treatment == Treatment::kPadded;
      arenas |= treatment == Treatment::kCappedArenas;
      another |= treatment == Treatment::kFreehold || treatment == Treatment::kPeer;
      least = std::min(least, fix.gain.value);
      most = std::max(most, fix.gain.value);
    }
    return padded && arenas && another && most <= kAlike * least;
  }

  const Experiment& experiment_;
  const Verdict& verdict_;
  const Cell* all_;
  const Cell* alone_;
  std::vector<Contradiction> found_;
};

}  // namespace

std::string_view name_of(Contradiction contradiction) noexcept {
  return kContradictionNames[static_cast<std::size_t>(contradiction)];
}

std::vector<Contradiction> contradictions_in(const Experiment& experiment, const Verdict& verdict) {
  return Check(experiment, verdict).found();
}

}  // namespace freehold::doctor
