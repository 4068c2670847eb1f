// SPDX-License-Identifier: MIT
#include "lab/experiment/claim.hpp"

#include <algorithm>

namespace freehold::cli {

Outcome decide(const std::vector<double>& ratios, double threshold, bool at_least) {
  const double doubt = ratios.size() == 1 ? kOneSet : 1;
  const double least = std::ranges::min(ratios) / doubt, greatest = std::ranges::max(ratios) * doubt;
  if (at_least ? least >= threshold : greatest <= threshold) return Outcome::kReproduced;
  if (at_least ? greatest < threshold : least > threshold) return Outcome::kRefuted;
  return Outcome::kUndecided;
}

void Claim::judge(const Sets& ratios, double wanted, bool is_at_least) {
  threshold = wanted;
  at_least = is_at_least;
  ratio = range_of(ratios);
  if (ratio) outcome = decide(known(ratios), threshold, at_least);
}

}  // namespace freehold::cli
