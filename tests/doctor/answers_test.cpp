// SPDX-License-Identifier: MIT
// Evidence of programs whose cause is known, as it was measured on a machine whose trials differ, is judged again. The
// folder answers/ has the trials and what was recorded, cut out of reports by cut.py. Each of these verdicts was wrong or
// undecided once, or gave advice in vain. Some of the rounds may say less, but nothing else.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/doctor/recorded_answer.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {
namespace {

class Answer : public testing::TestWithParam<std::string> {
 protected:
  const RecordedAnswer answer_{std::string(FREEHOLD_ANSWERS) + "/" + GetParam() + ".json"};

  [[nodiscard]] Verdict verdict(const Experiment& experiment) const {
    return verdict_of(experiment, answer_.recorded.get());
  }
  void expect_right(const Verdict& verdict, const std::string& which) const {
    const std::string cause(name_of(verdict.cause));
    EXPECT_TRUE(cause == "undecided" || std::ranges::find(answer_.right, cause) != answer_.right.end())
        << cause << " of " << which << ", lost " << verdict.lost.value;
    EXPECT_TRUE(!verdict.best_fix || answer_.is_advised) << which;
    expect_advice_within_bound(verdict, which);
  }
  // The report says beside its advice how much any allocator could do at most.
  void expect_advice_within_bound(const Verdict& verdict, const std::string& which) const {
    if (verdict.fixes.empty() || answer_.recorded == nullptr)
      return;  // nothing to compare with, or nothing is known of malloc
    ASSERT_TRUE(verdict.most_gain) << "no bound, " << which;
    EXPECT_LE(verdict.most_gain->value, verdict.most_gain->high) << which;
    for (const Fix& fix : verdict.fixes) {
      if (!fix.helps && (!verdict.best_fix || &fix != &verdict.fixes[*verdict.best_fix])) continue;
      EXPECT_LE(fix.gain.value, verdict.most_gain->high) << answer_.experiment.variants[fix.variant].name << ", " << which;
      EXPECT_LE(fix.gain.high, verdict.most_gain->high) << answer_.experiment.variants[fix.variant].name << ", " << which;
    }
  }
};

TEST_P(Answer, AllTrials_AsExpected) {
  const Verdict now = verdict(answer_.experiment);
  EXPECT_EQ(name_of(now.cause), answer_.expected);
  expect_right(now, "all trials");
}

TEST_P(Answer, SomeRounds_RightOrUndecided) {
  std::mt19937 random(1);
  for (unsigned time = 0; time < 10; ++time) {
    const unsigned rounds = random();
    Experiment some = answer_.experiment;
    for (Cell& cell : some.cells)
      std::erase_if(cell.trials, [&](const Trial& trial) { return (rounds >> (trial.round.value_or(0) % 32) & 1) == 0; });
    std::erase_if(some.cells, [](const Cell& cell) { return cell.trials.empty() && cell.failure.empty(); });
    some.delayed.clear();
    expect_right(verdict(some), "some rounds, " + std::to_string(time));
  }
}

std::vector<std::string> answers() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(FREEHOLD_ANSWERS))
    if (file.path().extension() == ".json") names.push_back(file.path().stem());
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Of, Answer, testing::ValuesIn(answers()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace freehold::doctor
