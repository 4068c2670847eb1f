// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/verdict.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/facts/facts.hpp"
#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor {
namespace {

constexpr double kNear = 4;          // a row that is worth a word
constexpr double kNamedPart = 0.01;  // of what is lost: less is not told

constexpr std::array<std::string_view, kCauses> kCauseNames{
    "none",        "allocator-lock",  "remote-frees", "allocator-false-sharing", "page-faults", "arena-bloat", "own-lock",
    "own-sharing", "own-page-faults", "own-malloc",   "memory-bandwidth",        "cpu-quota",   "serial",      "mixed",
    "undecided"};

class Judge {
 public:
  Judge(const Experiment& experiment, const Attribution* recorded)
      : experiment_(without_disturbed(experiment)), of_(experiment_, recorded) {}

  Verdict verdict() {
    Verdict verdict;
    if (of_.all == nullptr) return verdict;
    gains_ = gains_of(of_);
    verdict.all = of_.all->setting;
    verdict.alone = of_.alone != nullptr ? of_.alone->setting : of_.all->setting;
    choose_allocator();
    facts_ = facts_of(of_, gains_);
    verdict.one_thread = facts_[Fact::kThreads]->value < limit_of(Limit::kSeveralThreads);
    if (of_.best_allocator != 0 && (verdict.one_thread || !bears_out_allocator())) {
      of_.best_allocator = 0;
      facts_ = facts_of(of_, gains_);
    }
    decide(verdict);
    tell_loss(verdict);
    verdict.fixes = std::move(gains_.fixes);
    verdict.best_fix = gains_.best_fix;
    verdict.scalability = std::move(gains_.scalability);
    verdict.most_gain = gains_.most_gain;
    verdict.disturbance = gains_.disturbance;
    verdict.noisy = gains_.noisy;
    if (verdict.missing == Fact::kAlikeGains) withdraw_advice(verdict);
    verdict.facts = facts_;
    return verdict;
  }

 private:
  using Costs = Resampled::Costs;

  // The treatment that the allocator's part is measured by: the one under which least is lost, of those that surely help.
  void choose_allocator() {
    if (of_.alone == nullptr) return;
    double least = 0;
    for (const Fix& fix : gains_.fixes) {
      if (!fix.helps || !of_.has_pair(fix.variant)) continue;
      const double lost = of_.costs.estimate([&](const Costs& costs) { return of_.lost_with(costs, fix.variant); }).value;
      if (of_.best_allocator == 0 || lost < least) {
        of_.best_allocator = fix.variant;
        least = lost;
      }
    }
  }

  // `with_loss`: else only what it needs by itself.
  [[nodiscard]] Standing<Criterion> standing_of(const Row& row, bool with_loss = true) const {
    Standing<Criterion> standing;
    for (const Criterion& evidence : excludes_all()) standing.exclude(evidence, facts_);
    for (const AnyOf& any : row.needs) standing.need(any, facts_);
    if (with_loss)
      for (const Criterion& evidence : row.excluded_by) standing.exclude(evidence, facts_);
    if (row.part == Fact::kAllocatorPart)
      for (const AnyOf& any : needs_of_allocators_part()) standing.need(any, facts_);
    if (with_loss && row.part)
      for (const AnyOf& any : needs_of_loss(*row.part)) standing.need(any, facts_);
    return standing;
  }
  // Another allocator puts everything elsewhere, also what the program shares by itself, and can be faster by that, or by
  // chance. What it saves is the allocator's doing if a row says in what way.
  [[nodiscard]] bool bears_out_allocator() const {
    return std::ranges::any_of(
        rows(), [&](const Row& row) { return row.part == Fact::kAllocatorPart && standing_of(row, false).is_likely; });
  }

  void decide(Verdict& verdict) {
    const Row *first = nullptr, *allocators = nullptr, *other = nullptr, *nearest = nullptr;
    Standing<Criterion> of_first, of_nearest;
    double greatest = 0;
    for (const Row& row : rows()) {
      const Standing<Criterion> standing = standing_of(row);
      const double part = row.part && facts_[*row.part] ? facts_[*row.part]->value : 0;
      if (row.part == Fact::kAllocatorPart && standing.is_sure() && allocators == nullptr) allocators = &row;
      if (row.part && row.part != Fact::kAllocatorPart) {
        if (standing.is_sure() && part > greatest) {
          greatest = part;
          other = &row;
        }
        // A part's kind, whether or not that part is sure.
        if (!own_kind_ && row.part == Fact::kOwnPart && standing_of(row, false).is_sure()) own_kind_ = row.cause;
      } else if (standing.is_sure() && first == nullptr) {
        first = &row;
        of_first = standing;
      }
      if (nearest == nullptr || standing.is_nearer_than(of_nearest)) {
        nearest = &row;
        of_nearest = standing;
      }
    }
    if (allocators != nullptr) allocator_kind_ = allocators->cause;
    const Row* answer = first;
    const bool is_before_parts = first != nullptr && !first->part;
    if (!is_before_parts || (allocators != nullptr && allocators < first)) {
      answer = allocators != nullptr ? allocators : other;
      if (answer == nullptr) answer = first;
    }
    if (answer != nullptr) {
      const bool is_whole =
          facts_[Fact::kAllocatorPart] && facts_[Fact::kAllocatorPart]->value >= limit_of(Limit::kWholePart);
      verdict.cause = answer == allocators && other != nullptr && !is_whole ? Cause::kMixed : answer->cause;
      const Standing<Criterion> standing = standing_of(*answer);
      const bool by_time = standing.is_told_by_time || verdict.cause == Cause::kNone;
      verdict.rests_on = by_time ? standing.is_told_by_counts ? Basis::kBoth : Basis::kTime : Basis::kCounts;
      return;
    }
    if (of_nearest.distance <= kNear) verdict.suspected = nearest->cause;
    verdict.missing = of_nearest.open.front().fact;
    verdict.experiment = nearest->experiment;
    verdict.doubt = doubt_of(of_nearest);
  }

  [[nodiscard]] Doubt doubt_of(const Standing<Criterion>& nearest) const {
    if (of_.alone == nullptr) return Doubt::kNoComparison;
    if (!nearest.is_possible) return Doubt::kContradiction;
    if (gains_.disturbance > kBusyFrom) return Doubt::kBusyMachine;
    for (const Criterion& open : nearest.open) {
      if (facts_[open.fact]) continue;
      if (open.fact == Fact::kPaddedGain) return Doubt::kNoPadding;
      if (open.fact == Fact::kMachinePart) return Doubt::kNoProcesses;
    }
    return Doubt::kChance;
  }

  void tell_loss(Verdict& verdict) const {
    if (of_.alone == nullptr) return;
    verdict.ideal_speedup = double(of_.all->setting.width()) / of_.alone->setting.width();
    verdict.speedup = of_.costs.estimate(
        [&](const Costs& costs) { return of_.growth_of_work(costs) * costs(*of_.alone) / costs(*of_.all); });
    verdict.lost = within(*facts_[Fact::kLost]);
    verdict.allocator_share = within(*facts_[Fact::kAllocatorPart]);
    if (verdict.lost.value < limit_of(Limit::kLoses) || facts_[Fact::kLost]->low < limit_of(Limit::kSurelyLoses)) return;
    if (verdict.one_thread) {
      verdict.parts = {{Cause::kSerial, {1, 1, 1}}};
      return;
    }
    for (const auto& [fact, cause] : {std::pair(Fact::kAllocatorPart, allocator_kind_),
                                      {Fact::kQuotaPart, Cause::kCpuQuota},
                                      {Fact::kMachinePart, Cause::kMemoryBandwidth},
                                      {Fact::kOwnPart, own_kind_.value_or(Cause::kUndecided)}})
      if (const auto& part = facts_[fact]; part && part->value >= kNamedPart)
        verdict.parts.push_back({cause, within(*part)});
    std::ranges::sort(verdict.parts, std::ranges::greater{}, [](const Part& part) { return part.share.value; });
  }
  [[nodiscard]] static Estimate within(const Estimate& share) {
    return {std::clamp(share.low, 0.0, share.value), share.value,
            std::clamp(share.high, share.value, std::max(share.value, 1.0))};
  }

  // The program as it is was slow in its trials.
  static void withdraw_advice(Verdict& verdict) {
    for (Fix& fix : verdict.fixes) fix.helps = false;
    verdict.best_fix.reset();
  }

  const Experiment experiment_;
  Losses of_;
  Gains gains_;
  Facts facts_;
  Cause allocator_kind_ = Cause::kAllocatorLock;
  std::optional<Cause> own_kind_;
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
  return Judge(experiment, recorded).verdict();
}

}  // namespace freehold::doctor
