// SPDX-License-Identifier: MIT
// A claim that figures of this machine reproduce, refute, or neither: a ratio and a threshold. Each set gives a ratio of its
// own, from figures that were measured side by side. The sets give limits between which the ratio lies; where the threshold
// lies between them, too, the claim is undecided. Measurements that other programs disturbed decide nothing (series.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/experiment/series.hpp"
#include "lab/experiment/sets.hpp"
#include "tools/support/names.hpp"

namespace freehold::lab {

enum class Outcome : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable, kNotMeasured };
inline constexpr Names<Outcome, 5> kOutcomes{{"reproduced", "refuted", "undecided", "not testable", "not measured"}};
[[nodiscard]] constexpr const auto& names_of(Outcome) { return kOutcomes; }

// One set has no range. It is taken to be this factor off, as single sets of a quiet machine were.
inline constexpr double kOneSet = 1.5;

// The median of the ratios (one for each set) and limits. The range of five sets is what Student's t gives as the limits of
// their mean, with 95% confidence. Fewer sets show less of the range, so theirs is widened to what t gives. Pre: not empty.
[[nodiscard]] Range limits_of(const std::vector<double>& ratios);
// True if both limits lie on one side of the threshold. A limit equal to it reproduces.
[[nodiscard]] Outcome decide(const Range& limits, double threshold, bool at_least);

struct Claim {
  std::string id;         // "processes-scale"
  std::string statement;  // "processes scale"
  Outcome outcome = Outcome::kNotMeasured;
  std::string figure = {};          // a sentence
  std::optional<Range> ratio = {};  // its limits
  std::size_t sets = 0;             // that have a ratio
  double threshold = 0;
  bool at_least = true;    // reproduced if the ratio is at least the threshold; else if at most
  bool disturbed = false;  // other programs had the CPUs in every set

  // Decides it, by what is shown: two digits behind the point. No set has a ratio: it stays as it was.
  void judge(const Sets& ratios, double wanted, bool is_at_least);
};

// "1.30 (1.21–1.44 by 5 sets), reproduced from 1.25 up"; empty: there is no ratio.
[[nodiscard]] std::string ratio_text(const Claim& claim);
// The same as fields: ratio, least_ratio, greatest_ratio, sets, threshold, at_least, disturbed.
[[nodiscard]] nlohmann::ordered_json ratio_json(const Claim& claim);

// judge(results) -> claims. They are decided by the measurements that no other program disturbed. Where those do not
// suffice, a claim shows what all measurements say, and is undecided. The claims may depend on the settings, not on the
// measurements.
template <class Results>
[[nodiscard]] auto judge_undisturbed(const Results& results, auto judge) {
  auto claims = judge(undisturbed(results));
  auto disturbed = judge(results);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].ratio || !disturbed[i].ratio) continue;
    claims[i] = std::move(disturbed[i]);
    claims[i].outcome = Outcome::kUndecided;
    claims[i].disturbed = true;
  }
  return claims;
}

}  // namespace freehold::lab
