// SPDX-License-Identifier: MIT
#include "freehold/alloc/return/budget.hpp"
#include "freehold/sync/atomics.hpp"
#include "tests/support/test.hpp"

namespace freehold::alloc {
namespace {

struct Config {
  static constexpr std::int64_t kKeepBytes = 1000;
  static constexpr std::int64_t kKeepShare = 10;
  static constexpr std::int64_t kRegretBytes = 5000;
};
using TestBudget = Budget<sync::NativeAtomics, Config>;
constexpr std::int64_t kReport = std::int64_t{1} << 20;  // a shard reports after so much change

TEST(Budget, NoPurgerThreadForSeveralThreads_LittleRegret) {
  TestBudget budget;
  budget.regret(2500, 1);
  EXPECT_EQ(budget.allowance(), 6000);
  budget.limit_regret();
  EXPECT_EQ(budget.allowance(), 1000 + 5000 / 16);
  budget.regret(2500, 1);
  EXPECT_EQ(budget.allowance(), 1000 + 5000 / 16);
}

struct ConfigWithCeiling : Config {
  static constexpr std::int64_t kCeilingQuarters = 3;
  static constexpr std::int64_t kLeastKeptBytes = 100;
};
TEST(Budget, NearTheCeiling_LessMayStay) {
  Budget<sync::NativeAtomics, ConfigWithCeiling> budget;
  budget.class_spans(50'000);
  budget.slots_taken(20'000);
  budget.regret(2500, 1);
  EXPECT_EQ(budget.allowance(), 1000 + 2000 + 5000);
  budget.set_ceiling(100'000, 4000);
  EXPECT_EQ(budget.allowance(), 8000) << "far from it as without";
  budget.set_ceiling(28'000, 4000);
  EXPECT_EQ(budget.allowance(), 6000);
  EXPECT_EQ(budget.excess(), 24'000);
  budget.nothing_left();  // 30,000 of 50,000 bytes cannot go back: there is no room
  EXPECT_EQ(budget.allowance(), 100);
  budget.set_ceiling(-5000, 4000);
  EXPECT_EQ(budget.allowance(), 100);
}

TEST(Budget, GrowthUnderACeiling_ALookIsDueAfterThatMuch) {
  Budget<sync::NativeAtomics, ConfigWithCeiling> budget;
  budget.direct(1'000'000'000);
  EXPECT_FALSE(budget.is_look_due(INT64_MAX - 1)) << "never without a ceiling";
  budget.set_ceiling(100'000, 4000);
  EXPECT_FALSE(budget.is_look_due(3999));
  EXPECT_TRUE(budget.is_look_due(4000));
  budget.direct(1500);
  budget.direct(-1500);
  budget.class_spans(1500);
  EXPECT_FALSE(budget.is_look_due(0));
  budget.pages_returned(500);
  EXPECT_FALSE(budget.is_look_due(0));
  budget.pages_returned(-1000);
  EXPECT_TRUE(budget.is_look_due(0));
}

TEST(Budget, EverythingFreedAgain_EveryFigureIsZero) {
  TestBudget budget;
  TestBudget::Shard shard;
  std::mt19937 random(3);
  std::int64_t sums[7] = {};
  for (int i = 0; i < 10'000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random() % 300'000);
    std::int64_t& sum = sums[random() % 7];
    const std::int64_t change = i < 9990 && random() % 2 == 0 ? bytes : -sum;
    sum += change;
    switch (&sum - sums) {
      case 0: budget.slots_taken(change); break;
      case 1: budget.class_spans(change); break;
      case 2: budget.pages_returned(change); break;
      case 3: budget.direct(change); break;
      case 4: budget.kept(change); break;
      case 5: (void)budget.spans_changed(shard, change, 0); break;
      default: (void)budget.spans_changed(shard, 0, change);
    }
    const auto f = budget.figures();
    ASSERT_EQ(f.live, sums[0]);
    ASSERT_EQ(f.class_spans, sums[1]);
    ASSERT_EQ(f.returned, sums[2]);
    ASSERT_EQ(f.direct, sums[3]);
    ASSERT_EQ(f.kept, sums[4]);
    ASSERT_EQ(f.dirty + shard.dirty.load(), sums[5]);
    ASSERT_EQ(f.runs + shard.runs.load(), sums[6]);
    ASSERT_LT(std::abs(shard.dirty.load()), kReport);
    ASSERT_LT(std::abs(shard.runs.load()), kReport);
  }
}

TEST(Budget, Shard_ReportsMoreThanAStepAndTellsSo) {
  TestBudget budget;
  TestBudget::Shard shard;
  EXPECT_FALSE(budget.spans_changed(shard, kReport, 0));
  EXPECT_EQ(budget.dirty(), 0);
  EXPECT_FALSE(budget.spans_changed(shard, 0, 0));
  EXPECT_TRUE(budget.spans_changed(shard, 1, 5));
  EXPECT_EQ(budget.dirty(), kReport + 1);
  EXPECT_EQ(shard.dirty.load(), 0);
  EXPECT_EQ(shard.runs.load(), 5);
  EXPECT_FALSE(budget.spans_changed(shard, -kReport, 0));
  EXPECT_TRUE(budget.spans_changed(shard, -1, 0));
  EXPECT_EQ(budget.dirty(), 0);
}

// ---- regret -----------------------------------------------------------------------------------------------------------

TEST(Budget, Regret_NobodyPurgesInTime_RaisesTheAllowanceUpToAConstant) {
  TestBudget budget;
  budget.class_spans(10'000);
  budget.class_spans(-10'000);
  budget.regret(2000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 4000) << "twice what was regretted, so that few steps reach the sawtooth's height";
  budget.regret(2000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 5000);
  budget.set_purged_in_time(true);
  budget.regret(2000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 9000);
  budget.set_purged_in_time(false);
  EXPECT_EQ(budget.allowance(), 1000 + 5000) << "no thread purges any more";
}

TEST(Budget, Regret_PurgedInTime_RaisesTheAllowanceUpToTheLargestSizeSeen) {
  TestBudget budget;
  budget.set_purged_in_time(true);
  budget.class_spans(10'000);
  budget.class_spans(-10'000);
  budget.regret(3000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 6000) << "twice what was regretted, so that few steps reach the sawtooth's height";
  budget.regret(3000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 10'000);
  budget.regret(std::int64_t{1} << 40, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 10'000);
  budget.direct(50'000);
  budget.direct(-50'000);
  budget.regret(30'000, 5000);
  EXPECT_EQ(budget.allowance(), 1000 + 50'000);
}

TEST(Budget, Regret_UseHasNotFallen_CountsUpToAShareOfIt) {
  TestBudget budget;
  budget.set_purged_in_time(true);
  budget.direct(100'000);
  const std::int64_t before = budget.allowance();
  budget.regret(100'000, 5000);
  EXPECT_EQ(budget.allowance(), before + 75'000) << "sizes that vary leave gaps: memory is not kept for that without end";
  budget.direct(-90'000);
  EXPECT_EQ(budget.allowance(), before - 90'000 / Config::kKeepShare + 90'000) << "what may come again";
  budget.direct(90'000);
  EXPECT_EQ(budget.allowance(), before + 75'000);
  budget.set_purged_in_time(false);
  EXPECT_EQ(budget.allowance(), before + Config::kRegretBytes);
}

TEST(Budget, Forget_HalvesOnceASecondWithoutRegret) {
  TestBudget budget;
  budget.set_purged_in_time(true);
  budget.direct(80'000);
  budget.direct(-80'000);
  budget.regret(40'000, 10'000);
  budget.forget(10'999);
  EXPECT_EQ(budget.allowance(), 81'000);
  budget.forget(11'000);
  EXPECT_EQ(budget.allowance(), 41'000);
  budget.forget(11'999);
  EXPECT_EQ(budget.allowance(), 41'000);
  budget.forget(12'000);
  EXPECT_EQ(budget.allowance(), 21'000);
  budget.regret(100, 12'500);
  budget.forget(13'400);
  EXPECT_EQ(budget.allowance(), 21'200) << "a new regret is a new second";
  for (std::uint64_t now = 14'000; now < 60'000; now += 1000) budget.forget(now);
  EXPECT_EQ(budget.allowance(), 1000) << "forgotten at last";
}

TEST(Budget, IsSoon_WithinASecondAndAcrossTheWrapOf32Bits) {
  EXPECT_FALSE(TestBudget::is_soon(0, 500)) << "never";
  EXPECT_TRUE(TestBudget::is_soon(1001, 1001));
  EXPECT_TRUE(TestBudget::is_soon(1001, 2000));
  EXPECT_FALSE(TestBudget::is_soon(1001, 2001));
  const std::uint64_t wrap = std::uint64_t{7} << 32;
  EXPECT_TRUE(TestBudget::is_soon(static_cast<std::uint32_t>(wrap - 99), wrap + 500));
  EXPECT_FALSE(TestBudget::is_soon(static_cast<std::uint32_t>(wrap - 99), wrap + 2000));
}

// ---- what cannot go back ----------------------------------------------------------------------------------------------

TEST(Budget, NothingLeft_WhatIsStuckIsNoExcessUntilMoreIsFreed) {
  TestBudget budget;
  budget.class_spans(100'000);
  budget.slots_taken(20'000);
  EXPECT_EQ(budget.excess(), 80'000 - 3000);
  budget.nothing_left();
  EXPECT_EQ(budget.excess(), -3000);
  EXPECT_EQ(budget.scattered(), 0);
  budget.slots_taken(-10'000);
  EXPECT_EQ(budget.scattered(), 50'000) << "what was freed, and what it may have freed the rest of";
  EXPECT_EQ(budget.excess(), 50'000 - 2000);
}

}  // namespace
}  // namespace freehold::alloc
