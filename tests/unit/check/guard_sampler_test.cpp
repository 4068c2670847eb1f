// SPDX-License-Identifier: MIT
// Sampling: the mean, the batches, and that threads and runs differ.
#include "freehold/check/guard_sampler.hpp"

#include <cmath>

#include "tests/support/test.hpp"

namespace freehold::check {
namespace {

// The allocations at which one was chosen.
std::vector<std::uint64_t> chosen(GuardSampler& sampler, std::uint32_t rate, std::uint32_t batch, std::uint64_t calls) {
  std::vector<std::uint64_t> at;
  for (std::uint64_t i = batch; i <= calls; i += batch)
    if (sampler.is_due(rate, batch)) at.push_back(i);
  return at;
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

}  // namespace
}  // namespace freehold::check
