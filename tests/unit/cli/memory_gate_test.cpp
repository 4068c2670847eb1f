// SPDX-License-Identifier: MIT
// --fail-if of `freehold doctor --memory`: what it understands, and what it answers of a diagnosis that is known.
#include "cli/doctor/gate.hpp"

#include <nlohmann/json.hpp>

#include "cli/support/failure.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/cli/memory_support.hpp"

namespace freehold::cli::doctor {
namespace {

Answer answer(const std::string& text, const MemoryDiagnosis& diagnosis = tests::memory_diagnosis()) {
  return Condition("--fail-if", text, memory_words()).judge(memory_facts_of(json_of(diagnosis))).answer;
}

TEST(MemoryCondition, Understood_AnsweredByTheLimits) {
  const std::vector<std::pair<std::string, Answer>> table{
      {"memory > 90M", Answer::kYes},  // 98 to 102 MiB
      {"memory > 90 MiB", Answer::kYes},
      {"memory>90MiB", Answer::kYes},
      {"memory > 94371840", Answer::kYes},
      {"memory > 100M", Answer::kUndecided},
      {"memory > 0.098G", Answer::kUndecided},
      {"memory > 110M", Answer::kNo},
      {"memory > 110000K", Answer::kNo},
      {"(memory > 90M)", Answer::kYes},
      {"memory > 90M and peak > 110M", Answer::kYes},  // 118 to 122
      {"memory > 90M&&peak > 110M", Answer::kYes},
      {"peak > 130M or failed", Answer::kYes},
      {"live > 60%", Answer::kYes},
      {"live > 80%", Answer::kNo},
      {"free > 20%", Answer::kYes},
      {"free > 26%", Answer::kNo},
      {"leak > 30%", Answer::kYes},  // half of the live data
      {"leak > 40%", Answer::kNo},
      {"saved(freehold) > 15%", Answer::kYes},  // 18 to 22 of 100
      {"saved(freehold) > 20%", Answer::kUndecided},
      {"saved(best) > 25%", Answer::kNo},
      {"saved(jemalloc) > 10%", Answer::kUndecided},  // it failed
      {"failed(jemalloc)", Answer::kYes},
      {"failed(freehold)", Answer::kNo},
      {"cause == leak", Answer::kYes},
      {"cause == live", Answer::kYes},
      {"cause == allocator", Answer::kNo},
      {"cause != allocator", Answer::kYes},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(answer(text), expected) << text;
}

TEST(MemoryCondition, MeasuresThatDisagree_SharesAreUndecided) {
  MemoryDiagnosis d = tests::memory_diagnosis();
  d.verdict.cause = freehold::doctor::MemoryCause::kUndecided;
  d.verdict.doubt = freehold::doctor::MemoryDoubt::kLiveExceeds;
  EXPECT_EQ(answer("live > 60%", d), Answer::kUndecided);
  EXPECT_EQ(answer("leak > 1%", d), Answer::kUndecided);
  EXPECT_EQ(answer("cause == leak", d), Answer::kUndecided);
  EXPECT_EQ(answer("cause == undecided", d), Answer::kYes);
  EXPECT_EQ(answer("memory > 90M", d), Answer::kYes) << "that was measured all the same";
}

}  // namespace
}  // namespace freehold::cli::doctor
