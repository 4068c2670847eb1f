// SPDX-License-Identifier: MIT
#include "tools/doctor/run/looks.hpp"

#include <algorithm>
#include <utility>

#include "tools/doctor/verdict/clarity.hpp"

namespace freehold::doctor {
namespace {

constexpr unsigned kSame = 3;        // verdicts, one after the other, that end the trials
constexpr unsigned kManyRounds = 8;  // after so many,
constexpr unsigned kClear = 2;       // or so many that are clear
constexpr double kMayHelp = 1.1;     // as fast with a treatment, that it is tried again while the verdict is open

}  // namespace

void Looks::add(const Experiment& experiment, Verdict verdict) {
  const bool is_same = taken_ > 0 && verdict.cause == last_.cause;
  same_ = is_same ? same_ + 1 : 1;
  clear_ = !is_clear(experiment, verdict) ? 0 : is_same ? clear_ + 1 : 1;
  last_ = std::move(verdict);
  ++taken_;
}

bool Looks::are_settled(unsigned rounds) const noexcept {
  return last_.cause != Cause::kUndecided && ((same_ >= kSame && rounds >= kManyRounds) || clear_ >= kClear);
}

std::vector<std::size_t> Looks::deciding(const Experiment& experiment) const {
  // The fact that is missing before all else; then what may be the allocator's part.
  const Treatment needed = last_.missing ? describe(*last_.missing).needs.value_or(Treatment::kNone) : Treatment::kNone;
  std::vector<std::size_t> variants{0};
  for (std::size_t variant = 1; variant < experiment.variants.size(); ++variant) {
    const auto may_help = [variant](const Fix& fix) {
      return fix.variant == variant && (fix.helps || fix.gain.value >= kMayHelp);
    };
    if (experiment.variants[variant].treatment == needed || std::ranges::any_of(last_.fixes, may_help))
      variants.push_back(variant);
  }
  return variants;
}

}  // namespace freehold::doctor
