// SPDX-License-Identifier: MIT
// Distances and weights against the mathematical library, and the estimate itself: what stands behind the samples comes to
// what was passed over.
#include "freehold/profile/byte_sampler.hpp"

#include <cmath>

#include "tests/support/test.hpp"

namespace freehold::profile {
namespace {

TEST(ByteSampler, Logarithm_AsTheLibrarys) {
  for (const std::uint32_t n : {1U, 2U, 3U, 1'000U, 1U << 20, 123'456'789U, 1U << 31, 0xffff'fffeU, 0xffff'ffffU})
    EXPECT_NEAR(negative_ln_of_fraction(n), -std::log(n / 4294967296.0), 1e-7) << n;
}
TEST(ByteSampler, Probability_AsTheLibrarys) {
  for (const double x : {0.0, 1e-9, 1e-5, 0.01, 0.5, 1.0, 3.0, 20.0, 39.9, 41.0, 1e9})
    EXPECT_NEAR(one_minus_exp(x), -std::expm1(-x), 1e-12 * -std::expm1(-x)) << x;
}

// Poisson points: as many as bytes / mean, and their distances have the mean as their deviation.
TEST(ByteSampler, Points_MeanAndDeviationAreThoseOfAPoissonProcess) {
  constexpr std::uint64_t kMean = 1'000, kBytes = 16, kBlocks = 5'000'000;
  ByteSampler sampler;
  double points = 0, squares = 0;
  std::uint64_t last = 0;
  for (std::uint64_t i = 1; i <= kBlocks; ++i)
    if (sampler.is_due(kMean, kBytes)) {
      const auto distance = static_cast<double>((i - last) * kBytes);
      ++points;
      squares += distance * distance;
      last = i;
    }
  const double expected = kBlocks * one_minus_exp(static_cast<double>(kBytes) / kMean);
  EXPECT_NEAR(points, expected, 5 * std::sqrt(expected));
  EXPECT_NEAR(squares / points, 2.0 * kMean * kMean, 0.1 * kMean * kMean);
}

TEST(ByteSampler, BlocksOfAnySize_EstimateComesToWhatWasPassed) {
  constexpr std::uint64_t kMean = 4'096;
  for (const std::uint64_t bytes : {16ULL, 320ULL, 4'096ULL, 32'768ULL, 1'000'000ULL}) {
    ByteSampler sampler;
    const std::uint64_t blocks = 400'000'000 / (bytes + 200);
    double estimate = 0;
    for (std::uint64_t i = 0; i < blocks; ++i)
      if (sampler.is_due(kMean, bytes)) estimate += blocks_behind(bytes, kMean);
    const double samples = static_cast<double>(blocks) / blocks_behind(bytes, kMean);
    EXPECT_NEAR(estimate / static_cast<double>(blocks), 1, 5 / std::sqrt(samples)) << bytes;
  }
}

TEST(ByteSampler, BatchOrOneByOne_TheSame) {
  constexpr std::uint64_t kMean = 10'000, kBytes = 64;
  double of_batches = 0, of_free_passes = 0;
  ByteSampler batches, passes;
  for (int i = 0; i < 200'000; ++i) {
    batches.pass(kMean, kBytes, 32, [&](std::uint64_t at) {
      ASSERT_LT(at, 32U);
      ++of_batches;
    });
    if (!passes.passes_freely(kMean, kBytes, 32)) passes.pass(kMean, kBytes, 32, [&](std::uint64_t) { ++of_free_passes; });
  }
  const double expected = 200'000 * 32 / blocks_behind(kBytes, kMean);
  EXPECT_NEAR(of_batches, expected, 5 * std::sqrt(expected));
  EXPECT_NEAR(of_free_passes, expected, 5 * std::sqrt(expected));
}

TEST(ByteSampler, AnotherMean_CountsFromNow) {
  ByteSampler sampler;
  (void)sampler.is_due(std::uint64_t{1} << 50, 1);
  bool seen = false;
  for (int i = 0; i < 10'000 && !seen; ++i) seen = sampler.is_due(100, 16);
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace freehold::profile
