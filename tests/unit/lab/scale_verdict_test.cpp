// SPDX-License-Identifier: MIT
#include "tests/support/test.hpp"
#include "tests/unit/lab/scale_support.hpp"

namespace freehold::lab::scale {
namespace {

std::vector<Outcome> outcomes(const Results& results) {
  std::vector<Outcome> list;
  for (const Claim& claim : verdict_of(results).claims) list.push_back(claim.outcome);
  return list;
}

TEST(ScaleVerdict, FreeholdThatDegrades_Refuted) {
  const Results results = results_with([](const Job& job, std::size_t) {
    const bool bad = job.mode == Mode::kThreads && job.test == Workload::kAllocate;
    return bad ? 0.2 : 0.2 / std::min(job.workers, 2u);
  });
  EXPECT_EQ(outcomes(results), (std::vector{Outcome::kReproduced, Outcome::kReproduced, Outcome::kRefuted}));
}

TEST(ScaleVerdict, ViaPool_TwoMoreFindings) {
  // A locked component: threads wait for each other, whatever the number; the pool's workers take `pooled` seconds.
  const auto findings = [](double pooled) {
    const auto seconds = [=](const Job& job, std::size_t set) {
      if (job.test == Workload::kLocked && job.mode == Mode::kThreads) return 0.3;
      if (job.test == Workload::kLocked && job.mode == Mode::kPool) return pooled;
      return as_in_the_article(job, set);
    };
    return verdict_of(results_with(seconds, {1, 2, 4}, 3, true)).claims;
  };
  const std::vector<Claim> faster = findings(0.19);
  ASSERT_EQ(faster.size(), 5u);
  EXPECT_EQ(faster[3].id, "pool-scales");
  EXPECT_EQ(faster[3].outcome, Outcome::kReproduced);
  EXPECT_NE(faster[3].figure.find("100 ms in the pool, 400 ms in threads, 100 ms in threads under"), std::string::npos)
      << faster[3].figure;
  EXPECT_EQ(faster[4].id, "pool-unlocks");
  EXPECT_EQ(faster[4].outcome, Outcome::kReproduced);
  EXPECT_NEAR(faster[4].ratio->median, 0.3 / 0.19, 0.005);
  EXPECT_EQ(findings(0.21)[4].outcome, Outcome::kRefuted);  // 1.43 times, the article's gain is 1.5
}

}  // namespace
}  // namespace freehold::lab::scale
