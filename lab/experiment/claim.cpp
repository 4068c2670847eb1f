// SPDX-License-Identifier: MIT
#include "lab/experiment/claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace freehold::lab {
namespace {

double shown(double value) { return std::round(100 * value) / 100; }

}  // namespace

Range limits_of(const std::vector<double>& ratios) {
  // By how many times itself the range of 2, 3 or 4 sets is widened on either side: half the width of t's interval, t s /
  // √n, with the range that n values of a normal distribution have, less half the range.
  constexpr std::array kWidened{0.0, 0.0, 5.85, 0.97, 0.27};
  Range limits = *range_of({ratios.begin(), ratios.end()});
  if (ratios.size() == 1) {
    limits.least /= kOneSet;
    limits.greatest *= kOneSet;
  } else if (ratios.size() < kWidened.size()) {
    const double more = kWidened[ratios.size()] * (limits.greatest - limits.least);
    limits.least = std::max(0.0, limits.least - more);
    limits.greatest += more;
  }
  return limits;
}

Outcome decide(const Range& limits, double threshold, bool at_least) {
  if (at_least ? limits.least >= threshold : limits.greatest <= threshold) return Outcome::kReproduced;
  if (at_least ? limits.greatest < threshold : limits.least > threshold) return Outcome::kRefuted;
  return Outcome::kUndecided;
}

void Claim::judge(const Sets& ratios, double wanted, bool is_at_least) {
  threshold = shown(wanted);
  at_least = is_at_least;
  const std::vector<double> values = known(ratios);
  sets = values.size();
  if (sets == 0) return;
  const Range limits = limits_of(values);
  ratio = {shown(limits.median), shown(limits.least), shown(limits.greatest)};
  outcome = decide(*ratio, threshold, at_least);
}

std::string ratio_text(const Claim& claim) {
  if (!claim.ratio) return {};
  return fmt::format("{:.2f} ({:.2f}–{:.2f} by {} set{}), reproduced from {:.2f} {}{}", claim.ratio->median,
                     claim.ratio->least, claim.ratio->greatest, claim.sets, claim.sets == 1 ? "" : "s", claim.threshold,
                     claim.at_least ? "up" : "down", claim.disturbed ? "; other programs had the CPUs" : "");
}

nlohmann::ordered_json ratio_json(const Claim& claim) {
  const auto of_ratio = [&](double Range::* part) {
    return claim.ratio ? nlohmann::ordered_json(*claim.ratio.*part) : nlohmann::ordered_json(nullptr);
  };
  return {{"ratio", of_ratio(&Range::median)},
          {"least_ratio", of_ratio(&Range::least)},
          {"greatest_ratio", of_ratio(&Range::greatest)},
          {"sets", claim.sets},
          {"threshold", claim.ratio ? nlohmann::ordered_json(claim.threshold) : nlohmann::ordered_json(nullptr)},
          {"at_least", claim.at_least},
          {"disturbed", claim.disturbed}};
}

}  // namespace freehold::lab
