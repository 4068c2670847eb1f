// SPDX-License-Identifier: MIT
// Two reports against each other.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/doctor/comparison.hpp"
#include "cli/doctor/results_json.hpp"
#include "cli/support/failure.hpp"
#include "tests/unit/cli/doctor_schema.hpp"
#include "tests/unit/cli/doctor_support.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Change;
using freehold::doctor::Figure;

// The same program, its trials `factor` times as slow.
NamedSide side(double factor, const std::string& name = "a") {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  for (auto& cell : d.experiment.cells) {
    for (auto& trial : cell.trials) {
      trial.wall_s *= factor;
      trial.user_s *= factor;
      trial.system_s *= factor;
    }
  }
  return side_of(results_json(d), name);
}

const Change& change(const ComparisonReport& report, Figure figure) {
  const Change* const found = report.comparison.find(figure);
  if (found == nullptr) throw std::runtime_error("no change of " + std::string(name_of(figure)));
  return *found;
}

TEST(DoctorComparison, SameTrials_NothingIsBeyondChance) {
  const ComparisonReport comparison = compare(side(1, "a"), side(1, "b"));
  EXPECT_GE(comparison.comparison.changes.size(), 5u);
  for (const Change& one : comparison.comparison.changes) {
    EXPECT_FALSE(one.is_beyond_chance) << name_of(one.figure);
    EXPECT_EQ(one.ratio ? one.ratio->value : 1, 1) << name_of(one.figure);
  }
  EXPECT_NE(text_of(comparison).find("No clear difference"), std::string::npos);
}

TEST(DoctorComparison, TwiceAsFast_SaidWithLimits) {
  const ComparisonReport comparison = compare(side(1), side(0.5));
  const Change& time = change(comparison, Figure::kTime);
  EXPECT_TRUE(time.is_beyond_chance);
  EXPECT_NEAR(time.ratio->value, 0.5, 1e-9);
  EXPECT_GT(time.ratio->low, 0.45);
  EXPECT_LT(time.ratio->high, 0.55);
  EXPECT_TRUE(change(comparison, Figure::kTimeAlone).is_beyond_chance);
  EXPECT_TRUE(change(comparison, Figure::kCpu).is_beyond_chance);
  EXPECT_FALSE(change(comparison, Figure::kMemory).is_beyond_chance);
  EXPECT_NE(text_of(comparison).find("Faster: 2.0"), std::string::npos) << text_of(comparison);
  const auto gate = [&](const std::string& text) {
    return judge(conditions_of("--fail-if", std::vector{text}, comparison_words()), facts_of(comparison)).exit_code();
  };
  EXPECT_EQ(gate("time > 1.05"), kExitHolds);
  EXPECT_EQ(gate("time < 0.9"), kExitFails);
  EXPECT_EQ(gate("time < 0.5"), kExitUndecided);
}

TEST(DoctorComparison, OtherSettings_Refused) {
  NamedSide other = side(1, "b");
  other.measured.on_all.cpus = 8;
  EXPECT_THROW(static_cast<void>(compare(side(1), other)), Failure);
  NamedSide empty = side(1, "b");
  empty.measured.all.clear();
  EXPECT_THROW(static_cast<void>(compare(side(1), empty)), Failure);
}

// Others had a part of the CPUs: the time that they took is read from the report, and said.
TEST(DoctorComparison, DisturbedReport_IsNoted) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  for (auto& cell : d.experiment.cells) {
    for (auto& trial : cell.trials) {
      trial.wall_s *= 1.5;
      trial.taken_s = 0.25 * trial.wall_s * cell.setting.width();
    }
  }
  const std::string text = text_of(compare(side(1), side_of(results_json(d), "b")));
  EXPECT_NE(text.find("Other processes took 25% of the CPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("No clear difference"), std::string::npos) << text;
  EXPECT_EQ(text_of(compare(side(1), side(1))).find("Other processes"), std::string::npos);
}

}  // namespace
}  // namespace freehold::cli::doctor
