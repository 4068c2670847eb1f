// SPDX-License-Identifier: MIT
// How many blocks stand behind a mark, beyond those of its sampling distance. A loop that takes and frees blocks at a mark
// would pay for a sample at every turn. So at each turn a mark of weight w ends with the probability 1 / (2 kTurns w), and
// stands for 2 w with the same: Russian roulette. On the average it stands for the same as before, whatever becomes of the
// block of this turn. So estimates stay without bias, and n turns cost some kTurns log2(n / kTurns) samples.
//
// Weights of 1 are not kept. Others are known by the place of their marks: entry `at` of a bin, from the oldest. Bounded:
// one that finds no room takes the lightest one's, which counts as 1 from then on. A thread's own; all zero at first.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/profile/byte_sampler.hpp"

namespace freehold::profile {

class MarkWeights {
 public:
  static constexpr std::uint32_t kTurns = 128;
  static constexpr std::uint32_t kMost = std::uint32_t{1} << 20;  // no mark is heavier
  static constexpr std::size_t kKept = 8;
  static constexpr std::uint64_t kSmallestBytes = 16;  // the smallest block

  constexpr MarkWeights() noexcept = default;

  // A mark whose weight may be forgotten if it is 1.
  void put(std::size_t bin, std::size_t at, std::uint32_t weight) noexcept {
    (void)take(bin, at);
    Kept* const least = std::ranges::min_element(kept_, {}, &Kept::weight);
    if (weight > 1 && weight > least->weight)
      *least = {weight, static_cast<std::uint16_t>(bin), static_cast<std::uint16_t>(at)};
  }
  // The weight of a mark that leaves its place.
  [[nodiscard]] std::uint32_t take(std::size_t bin, std::size_t at) noexcept {
    for (Kept& kept : kept_) {
      if (kept.weight == 0 || kept.bin != bin || kept.at != at) continue;
      const std::uint32_t weight = kept.weight;
      kept = {};
      return weight;
    }
    return 1;
  }
  // Entry `at` of the bin has left it; those above move down.
  void remove(std::size_t bin, std::size_t at) noexcept {
    (void)take(bin, at);
    for (Kept& kept : kept_)
      if (kept.weight != 0 && kept.bin == bin && kept.at > at) --kept.at;
  }
  // The bin's n oldest entries have left it.
  void drop_oldest(std::size_t bin, std::size_t n) noexcept {
    for (Kept& kept : kept_) {
      if (kept.bin != bin) continue;
      if (kept.at < n)
        kept = {};
      else
        kept.at = static_cast<std::uint16_t>(kept.at - n);
    }
  }

  // Returns what a mark of this weight stands for after one more turn; 0: it ends. Not at a distance that asks for all
  // blocks.
  [[nodiscard]] static std::uint32_t turn(ByteSampler& random, std::uint64_t mean, std::uint32_t weight) noexcept {
    if (mean < kSmallestBytes || weight >= kMost || !random.is_one_in(mean, kTurns * weight)) return weight;
    return random.is_one_in(mean, 2) ? 2 * weight : 0;
  }

 private:
  struct Kept {
    std::uint32_t weight = 0;  // 0: none
    std::uint16_t bin = 0, at = 0;
  };
  Kept kept_[kKept]{};
};

// The distance of samples at which a block of `bytes` bytes stands for `weight` times as many as at `mean`.
[[nodiscard]] constexpr std::uint64_t thinned_mean(std::uint64_t bytes, std::uint64_t mean, std::uint32_t weight) noexcept {
  if (weight == 1 || bytes == 0) return mean;
  const double p = 1 / (blocks_behind(bytes, mean) * weight);                                         // at most 1/2
  const double ln = p * (1 + p * (1 / 2.0 + p * (1 / 3.0 + p * (1 / 4.0 + p * (1 / 5.0 + p / 6)))));  // -ln(1 - p)
  const double distance = static_cast<double>(bytes) / ln;
  const auto whole = static_cast<std::uint64_t>(distance);
  return distance - static_cast<double>(whole) < 0.5 ? whole : whole + 1;
}
// The weight that was put into a distance by thinned_mean().
[[nodiscard]] constexpr std::uint32_t weight_of(std::uint64_t bytes, std::uint64_t mean, std::uint64_t thinned) noexcept {
  if (thinned <= mean || bytes == 0 || mean == 0) return 1;
  const double ratio = blocks_behind(bytes, thinned) / blocks_behind(bytes, mean);
  std::uint32_t weight = 1;
  while (weight < MarkWeights::kMost && ratio > 1.5 * weight) weight *= 2;
  return weight;
}

}  // namespace freehold::profile
