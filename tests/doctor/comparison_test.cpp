// SPDX-License-Identifier: MIT
// Two sides whose trials are made up, and what is said of the difference.
#include "tools/doctor/facts/comparison.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace freehold::doctor {
namespace {

Side side_of(std::initializer_list<double> seconds, unsigned cpus = 4) {
  Side side;
  side.on_all.cpus = cpus;
  for (const double wall_s : seconds) {
    Trial trial;
    trial.wall_s = wall_s;
    trial.user_s = 3 * wall_s;
    trial.peak_rss_bytes = 1 << 20;
    trial.page_faults = 100;
    trial.voluntary_switches = 7;
    side.all.push_back(trial);
  }
  return side;
}
const Side kSeconds = side_of({1.00, 1.01, 0.99, 1.00, 1.00});
const Side kTwice = side_of({2.00, 2.02, 1.98, 2.00, 2.00});

TEST(Comparison, TwiceTheTime_TimeAndCpuAreBeyondChance) {
  const Comparison comparison = compare(kSeconds, kTwice);
  EXPECT_EQ(comparison.mismatch, Mismatch::kNone);
  EXPECT_EQ(comparison.changes.front().figure, Figure::kTime);
  EXPECT_NEAR(comparison.find(Figure::kTime)->ratio->value, 2, 1e-9);
  EXPECT_EQ(tempo_of(comparison), Tempo::kSlower);
  EXPECT_EQ(tempo_of(compare(kTwice, kSeconds)), Tempo::kFaster);
  EXPECT_TRUE(comparison.find(Figure::kCpu)->is_beyond_chance);
  for (const Figure same : {Figure::kMemory, Figure::kFaults, Figure::kWaits})
    EXPECT_FALSE(comparison.find(same)->is_beyond_chance) << name_of(same);
}

TEST(Comparison, Throughput_TimeForAUnit) {
  Side busy = kSeconds, busier = kSeconds;
  for (Trial& trial : busy.all) trial.throughput = 1000;
  for (Trial& trial : busier.all) trial.throughput = 1500;
  EXPECT_NEAR(compare(busy, busier).find(Figure::kTime)->ratio->value, 1000.0 / 1500, 1e-9);
}

// Others had half of the CPU that a trial on one CPU wanted, so that it took twice as long.
Side beside_others(std::size_t disturbed) {
  Side side = side_of({1.00, 1.01, 0.99, 1.00, 1.00}, 1);
  for (std::size_t i = 0; i < disturbed; ++i) {
    side.all[i].wall_s *= 2;
    side.all[i].taken_s = 0.5 * side.all[i].wall_s;
  }
  return side;
}

TEST(Comparison, DisturbedTrials_AreLeftOutWhereOthersAreThere) {
  const Comparison comparison = compare(beside_others(0), beside_others(3));
  EXPECT_NEAR(comparison.find(Figure::kTime)->after.value, 1, 0.02);
  EXPECT_NEAR(comparison.find(Figure::kTime)->ratio->value, 1, 0.02);
  EXPECT_EQ(tempo_of(comparison), Tempo::kNoClearChange);
}

TEST(Comparison, DisturbedOnSeveralCpus_LimitsSpanWhatTheyMayHaveCost) {
  Side quiet = kSeconds, disturbed = kSeconds;
  for (Trial& trial : disturbed.all) {
    trial.wall_s = 1.3;
    trial.taken_s = 1.2;  // out of 5.2 that four CPUs had
  }
  const Estimate exact = *compare(quiet, disturbed).find(Figure::kTime)->ratio;
  EXPECT_NEAR(exact.value, 1, 0.1) << "all threads were ready at all times, so that all waited alike";
  EXPECT_LT(exact.high - exact.low, 0.3);
  for (Trial& trial : disturbed.all) trial.user_s = 1, trial.system_s = 0;
  const Estimate ratio = *compare(quiet, disturbed).find(Figure::kTime)->ratio;
  EXPECT_LT(ratio.low, 0.5) << "they may have held up one thread for which all waited";
  EXPECT_GT(ratio.high, 0.9) << "or all of them, while none waited for another";
}

TEST(Comparison, SharesAndCounts_ByTheirLimits) {
  Side before = kSeconds, after = kSeconds;
  before.in_malloc = {0.10, 0.12, 0.14};
  after.in_malloc = {0.13, 0.15, 0.17};
  before.lost = {0.1, 0.2, 0.3};
  after.lost = {0.4, 0.5, 0.6};
  before.allocations = 1000;
  after.allocations = 3000;
  const Comparison comparison = compare(before, after);
  EXPECT_FALSE(comparison.find(Figure::kInMalloc)->is_beyond_chance) << "the limits overlap";
  EXPECT_TRUE(comparison.find(Figure::kLost)->is_beyond_chance);
  EXPECT_FALSE(comparison.find(Figure::kLost)->ratio.has_value());
  EXPECT_EQ(comparison.find(Figure::kAllocations)->ratio->value, 3);
}

}  // namespace
}  // namespace freehold::doctor
