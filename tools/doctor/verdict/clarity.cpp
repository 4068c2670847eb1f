// SPDX-License-Identifier: MIT
#include "tools/doctor/verdict/clarity.hpp"

#include <algorithm>

#include "tools/doctor/verdict/verdict_table.hpp"

namespace freehold::doctor {
namespace {

constexpr double kFarFrom = 2;           // times a threshold, at the nearer limit
constexpr double kMostWidth = 0.15;      // between the limits of a share that is told
constexpr double kMostRatio = 1.25;      // between those of the gain that is advised
constexpr double kOpenGain = 1.2;        // as fast, perhaps: it is open whether this helps
constexpr double kNobodyAdvises = 1.05;  // as fast at most: no other malloc need be tried

bool is_narrow(const Estimate& share) { return share.high - share.low <= kMostWidth; }

bool is_clear_head(const Verdict& verdict) {
  if (verdict.one_thread) return verdict.cause == Cause::kSerial;
  if (verdict.cause == Cause::kNone) return kFarFrom * verdict.lost.high <= limit_of(Limit::kScales);
  if (verdict.cause == Cause::kMixed || verdict.cause == Cause::kUndecided || verdict.parts.empty()) return false;
  const Part& main = verdict.parts.front();
  return main.cause == verdict.cause && main.share.low >= limit_of(Limit::kWholePart) &&
         verdict.lost.low >= kFarFrom * limit_of(Limit::kLoses) && is_narrow(verdict.lost) &&
         is_narrow(verdict.allocator_share);
}

bool is_clear_advice(const Experiment& experiment, const Verdict& verdict) {
  const auto is_open = [](const Fix& fix) { return !fix.failed && !fix.helps && fix.gain.high >= kOpenGain; };
  if (std::ranges::any_of(verdict.fixes, is_open)) return false;
  if (verdict.best_fix) {
    const Estimate& gain = verdict.fixes[*verdict.best_fix].gain;
    if (gain.high > kMostRatio * gain.low) return false;
  }
  if (verdict.most_gain && verdict.most_gain->high < kNobodyAdvises) return true;
  return verdict.fixes.size() + 1 == experiment.variants.size();
}

}  // namespace

bool is_clear(const Experiment& experiment, const Verdict& verdict) {
  return verdict.disturbance <= kBusyFrom && is_clear_head(verdict) && is_clear_advice(experiment, verdict);
}

}  // namespace freehold::doctor
