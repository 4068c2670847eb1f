// SPDX-License-Identifier: MIT
#include "tools/doctor/run/looks.hpp"

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
  std::vector<std::size_t> variants{0};
  for (const Fix& fix : last_.fixes) {
    const Treatment treatment = experiment.variants[fix.variant].treatment;
    const bool may_acquit = treatment == Treatment::kFreehold || treatment == Treatment::kPadded;
    if (fix.helps || fix.gain.value >= kMayHelp || may_acquit) variants.push_back(fix.variant);
  }
  return variants;
}

}  // namespace freehold::doctor
