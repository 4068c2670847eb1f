// SPDX-License-Identifier: MIT
// Two reports against each other.
#include <nlohmann/json.hpp>

#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/compare_answer.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::doctor::report {
namespace {

NamedSide side(const Diagnosis& diagnosis) { return side_of(report_of(diagnosis), "a"); }

// Others had a part of the CPUs: the time that they took is read from the report, and said.
TEST(DoctorComparison, DisturbedReport_IsNoted) {
  Diagnosis d = diagnosis_with(Cause::kAllocatorLock);
  for (auto& cell : d.experiment.cells) {
    for (auto& trial : cell.trials) {
      trial.wall_s *= 1.5;
      trial.taken_s = 0.25 * trial.wall_s * cell.setting.width();
    }
  }
  const NamedSide quiet = side(diagnosis_with(Cause::kAllocatorLock));
  const std::string text = report::text_of(document_of(compare(quiet, side(d)), Gate{}));
  EXPECT_NE(text.find("Other processes took 25% of the CPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("No clear difference"), std::string::npos) << text;
  EXPECT_EQ(report::text_of(document_of(compare(quiet, quiet), Gate{})).find("Other processes"), std::string::npos);
}

}  // namespace
}  // namespace freehold::doctor::report
