// SPDX-License-Identifier: MIT
// Two commands in turns: a runner whose figures are made up, and a clock that only its runs move on.
#include "tools/doctor/run/paired_trials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace freehold::doctor {
namespace {

// The nth run of a version, counted from 0; on one CPU or on all.
struct Asked {
  Version version;
  bool on_one;
  unsigned nth;
};

Run run_of(double wall_s, double cpu_s = 0) {
  Run run;
  run.trial.wall_s = wall_s;
  run.trial.user_s = cpu_s > 0 ? cpu_s : wall_s;
  run.trial.peak_rss_bytes = 10 << 20;
  run.trial.page_faults = 1000;
  run.trial.voluntary_switches = 50;
  return run;
}
Run failed_run(int exit_code) {
  Run run = run_of(0.1);
  run.trial.wait_status = exit_code << 8;
  run.last_words = "what went before\nno such input";
  return run;
}
Run run_that(Ending ending, const std::string& why = {}) {
  Run run = run_of(0.1);
  run.ending = ending;
  run.why = why;
  return run;
}
Run stopped_run() { return run_that(Ending::kStopped); }
Run run_with(const std::string& library) {
  Run run = run_of(1);
  run.files = {library};
  return run;
}

class Fake {
 public:
  explicit Fake(std::function<Run(const Asked&)> answer) : answer_(std::move(answer)) {
    caller_.run = [this](const Command& command, const LaunchOptions& options, double seconds) {
      return perform(command, options, seconds);
    };
    caller_.now_s = [this] { return clock_s_; };
    caller_.show = [](const PairedActivity&) {};
    caller_.probe = [](Version, const std::set<std::string>&) { return std::string(); };
    caller_.signal = [this] { return signal_; };
    caller_.cpus = {0, 1, 2, 3};
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  PairedOutcome in_rounds(unsigned rounds) { return run({.commands = {before_, after_}, .rounds = rounds}); }
  PairedOutcome within(double budget_s) { return run({.commands = {before_, after_}, .budget_s = budget_s}); }

  PairedCaller caller_;
  std::string order_;  // order of the runs: a and b on all CPUs, A and B on one
  double clock_s_ = 0, greatest_timeout_s_ = 0;
  int signal_ = 0;

 private:
  PairedOutcome run(const PairedTrials& trials) { return run_paired(trials, caller_); }
  Run perform(const Command& command, const LaunchOptions& options, double seconds) {
    const Version version = command.file == before_.file ? Version::kBefore : Version::kAfter;
    const bool on_one = options.cpus == std::vector<unsigned>{0};
    EXPECT_TRUE(on_one || options.cpus.empty());
    const char letter = version == Version::kBefore ? (on_one ? 'A' : 'a') : (on_one ? 'B' : 'b');
    const auto nth = static_cast<unsigned>(std::ranges::count(order_, letter));
    order_ += letter;
    greatest_timeout_s_ = std::max(greatest_timeout_s_, seconds);
    Run run = answer_({version, on_one, nth});
    clock_s_ += run.trial.wall_s;
    if (run.ending == Ending::kStopped) signal_ = 2;
    return run;
  }

  std::function<Run(const Asked&)> answer_;
  Command before_{.file = "/before", .arguments = {"before"}}, after_{.file = "/after", .arguments = {"after"}};
};

// One second on all CPUs, four on one; the later version takes `factor` times as long, and trials differ by `noise`.
std::function<Run(const Asked&)> programs(double factor, double noise = 0.001) {
  return [factor, noise](const Asked& asked) {
    constexpr double kPattern[] = {0, 1, -1, 0.5, -0.5, 0.8, -0.8};
    const double differs = 1 + noise * kPattern[(asked.nth + (asked.version == Version::kAfter ? 3 : 0)) % 7];
    const double wall_s = (asked.version == Version::kAfter ? factor : 1) * (asked.on_one ? 4 : 1) * differs;
    return run_of(wall_s, asked.on_one ? wall_s : 4 * wall_s);
  };
}

TEST(PairedTrials, Rounds_VersionsTakeTurns) {
  Fake fake(programs(1));
  const PairedOutcome outcome = fake.in_rounds(3);
  EXPECT_EQ(fake.order_,
            "ab"
            "abAB"
            "baBA"
            "abAB")
      << "one of each to warm up";
  for (const Side& side : outcome.sides) {
    EXPECT_EQ(side.all.size(), 3u) << "the first run is no trial";
    EXPECT_EQ(side.alone.size(), 3u);
    EXPECT_EQ(side.on_all.cpus, 4u);
  }
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.signal, 0);
}

TEST(PairedTrials, ATenthFaster_SaidWithinItsLimits) {
  const PairedOutcome outcome = Fake(programs(0.9)).in_rounds(5);
  EXPECT_EQ(tempo_of(outcome.comparison), Tempo::kFaster);
  const Estimate ratio = *outcome.comparison.find(Figure::kTime)->ratio;
  EXPECT_NEAR(ratio.value, 0.9, 0.005);
  EXPECT_GT(ratio.low, 0.85);
  EXPECT_LT(ratio.high, 0.95);
  EXPECT_TRUE(outcome.comparison.find(Figure::kTimeAlone)->is_beyond_chance);
  EXPECT_TRUE(outcome.comparison.find(Figure::kCpu)->is_beyond_chance);
  EXPECT_FALSE(outcome.comparison.find(Figure::kMemory)->is_beyond_chance);
}

// A tenth within trials that differ by a third proves nothing.
TEST(PairedTrials, Noisy_NoClearChange) {
  const PairedOutcome outcome = Fake(programs(0.9, 0.33)).in_rounds(5);
  EXPECT_EQ(tempo_of(outcome.comparison), Tempo::kNoClearChange);
  const Estimate ratio = *outcome.comparison.find(Figure::kTime)->ratio;
  EXPECT_LT(ratio.low, 0.9);
  EXPECT_GT(ratio.high, 1.05);
}

TEST(PairedTrials, Budget_IsFilledAndKept) {
  for (const double budget_s : {10.0, 30.0, 60.0, 120.0}) {
    Fake fake(programs(1.2));
    const PairedOutcome outcome = fake.within(budget_s);
    EXPECT_LE(fake.clock_s_, budget_s);
    EXPECT_GT(fake.clock_s_, 0.6 * budget_s);
    EXPECT_EQ(outcome.sides[0].alone.empty(), budget_s < 40) << "what one CPU costs is left out first: " << budget_s;
  }
}

// Something else on the machine begins after the first run: the budget holds all the same.
TEST(PairedTrials, SlowerThanAtFirst_BudgetIsKept) {
  Fake fake([](const Asked& asked) { return run_of(asked.nth == 0 ? 1 : 3); });
  const PairedOutcome outcome = fake.within(60);
  EXPECT_TRUE(outcome.complete);
  EXPECT_GE(outcome.sides[1].all.size(), 1u);
  EXPECT_EQ(outcome.sides[0].all.size(), outcome.sides[1].all.size());
  EXPECT_LE(fake.clock_s_, 60);
}

void expect_refusal(Fake& fake, Version version, Refusal why, const std::string& detail = {}) {
  try {
    static_cast<void>(fake.in_rounds(3));
    ADD_FAILURE() << "not refused";
  } catch (const PairedRefused& refused) {
    EXPECT_EQ(refused.version(), version);
    EXPECT_EQ(refused.why(), why);
    EXPECT_EQ(refused.detail(), detail);
    EXPECT_EQ(refused.more(), why == Refusal::kFails ? "no such input" : "");
  }
}

TEST(PairedTrials, BeforeFails_ItIsNamedAndNothingElseIsRun) {
  Fake fake([](const Asked& asked) { return asked.version == Version::kBefore ? failed_run(3) : run_of(1); });
  expect_refusal(fake, Version::kBefore, Refusal::kFails, "exit code 3");
  EXPECT_EQ(fake.order_, "a");
}

TEST(PairedTrials, CannotBeStartedOrDoesNotEnd_Refused) {
  Fake missing([](const Asked&) { return run_that(Ending::kNotStarted, "Permission denied"); });
  expect_refusal(missing, Version::kBefore, Refusal::kNotExecutable, "Permission denied");
  Fake endless(
      [](const Asked& asked) { return asked.version == Version::kAfter ? run_that(Ending::kOutOfTime) : run_of(1); });
  expect_refusal(endless, Version::kAfter, Refusal::kNoEnd);
}

TEST(PairedTrials, StoppedInTheMiddle_FinishedTrialsAreCompared) {
  Fake fake([answer = programs(0.5)](const Asked& asked) {
    return asked.version == Version::kAfter && !asked.on_one && asked.nth == 4 ? stopped_run() : answer(asked);
  });
  const PairedOutcome outcome = fake.in_rounds(9);
  EXPECT_FALSE(outcome.complete);
  EXPECT_EQ(outcome.signal, 2);
  EXPECT_EQ(outcome.sides[0].all.size(), 3u);
  EXPECT_EQ(outcome.sides[1].all.size(), 3u);
  EXPECT_EQ(tempo_of(outcome.comparison), Tempo::kFaster);
}

TEST(PairedTrials, Timeouts_FollowTheFirstRun) {
  Fake fake(programs(1));
  static_cast<void>(fake.within(50));
  EXPECT_EQ(fake.greatest_timeout_s_, 50) << "the first run may take all of the budget";
  Fake rounds(programs(1));
  static_cast<void>(rounds.in_rounds(2));
  EXPECT_GT(rounds.greatest_timeout_s_, 100);
}

TEST(PairedTrials, RecordedRun_FailsOrIsUnderFreehold_IsNoted) {
  Fake fake([](const Asked& asked) {
    if (asked.version == Version::kAfter) return run_with("/usr/lib/libfreehold.so");
    return asked.nth == 3 ? failed_run(9) : run_of(1);
  });
  fake.caller_.probe = [](Version, const std::set<std::string>&) { return std::string("/no/probe.so"); };
  const PairedOutcome outcome = fake.in_rounds(2);
  ASSERT_EQ(outcome.notes.size(), 2u);
  EXPECT_EQ(outcome.notes[0].kind, PairedNote::Kind::kRecordedRunFailed);
  EXPECT_EQ(outcome.notes[0].why, "exit code 9");
  EXPECT_EQ(outcome.notes[1].kind, PairedNote::Kind::kUnderFreehold);
  EXPECT_EQ(outcome.notes[1].version, Version::kAfter);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.comparison.find(Figure::kAllocations), nullptr);
}

}  // namespace
}  // namespace freehold::doctor
