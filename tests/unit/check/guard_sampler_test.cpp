// SPDX-License-Identifier: MIT
// Sampling: the mean, the batches, and that threads and runs differ.
#include "freehold/check/guard_sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace freehold::check {
namespace {

// The allocations at which one was chosen.
std::vector<std::uint64_t> chosen(GuardSampler& sampler, std::uint32_t rate, std::uint32_t batch, std::uint64_t calls) {
  std::vector<std::uint64_t> at;
  for (std::uint64_t i = batch; i <= calls; i += batch)
    if (sampler.is_due(rate, batch)) at.push_back(i);
  return at;
}

TEST(GuardSampler, RateOne_EveryAllocation) {
  GuardSampler sampler;
  EXPECT_EQ(chosen(sampler, 1, 1, 1'000).size(), 1'000U);
}

// Distances between 1 and twice the rate have a deviation of rate / sqrt(3): within five of the mean's own.
TEST(GuardSampler, AnyRateAndBatch_TheMeanIsTheRate) {
  constexpr std::uint64_t kCalls = 2'000'000;
  for (const std::uint32_t rate : {10U, 1'000U, 5'000U})
    for (const std::uint32_t batch : {1U, 7U, 32U}) {
      if (10 * batch > rate) continue;  // or many distances are within a batch
      GuardSampler sampler;
      const double expected = static_cast<double>(kCalls) / rate;
      const auto seen = static_cast<double>(chosen(sampler, rate, batch, kCalls).size());
      EXPECT_NEAR(seen, expected, 5 * std::sqrt(expected / 3) + 1) << rate << " " << batch;
    }
}

TEST(GuardSampler, BatchLargerThanTheRate_OneOfEachAtMost) {
  GuardSampler sampler;
  EXPECT_EQ(chosen(sampler, 2, 32, 32'000).size(), 1'000U);
}

TEST(GuardSampler, Distances_AreSpreadAndWithinBounds) {
  GuardSampler sampler;
  std::set<std::uint64_t> distances;
  std::uint64_t last = 0;
  for (const std::uint64_t at : chosen(sampler, 50, 1, 200'000)) {
    ASSERT_TRUE(at - last >= 1 && at - last <= 99);
    distances.insert(at - last);
    last = at;
  }
  EXPECT_EQ(distances.size(), 99U);
}

TEST(GuardSampler, TwoThreads_ChooseDifferently) {
  GuardSampler samplers[2];
  EXPECT_NE(chosen(samplers[0], 100, 1, 10'000), chosen(samplers[1], 100, 1, 10'000));
}

TEST(GuardSampler, HugeRate_NeverSoon) {
  GuardSampler sampler;
  EXPECT_LE(chosen(sampler, ~0U, 1, 10'000).size(), 1U);
}

TEST(GuardSampler, Coin_HasTwoSides) {
  GuardSampler sampler;
  (void)sampler.is_due(1, 1);
  unsigned heads = 0;
  for (int i = 0; i < 10'000; ++i) heads += sampler.coin() ? 1 : 0;
  EXPECT_NEAR(heads, 5'000, 250);
}

}  // namespace
}  // namespace freehold::check
