// SPDX-License-Identifier: MIT
// The command's side of an examination: lines of shell, and refusals in words.
#include "tests/support/test.hpp"
#include "tools/doctor/command/questions.hpp"
#include "tools/doctor/command/refusals.hpp"

namespace freehold::doctor::command {
namespace {
using freehold::doctor::Refusal;
using freehold::doctor::Refused;
using freehold::doctor::Treatment;

TEST(CommandLines, Repetitions_AreLinesOfShell) {
  ::unsetenv("LD_PRELOAD");
  Diagnosis diagnosis;
  diagnosis.settings.widths = {1, 2};
  diagnosis.settings.command = {"./prog", "two words"};
  diagnosis.settings.input = "in put";
  diagnosis.experiment.variants = {{Treatment::kNone, "system", {}}, {Treatment::kFreehold, "freehold", {"/freehold.so"}}};
  diagnosis.experiment.cells.push_back({.variant = 1, .setting = {.threads = 0, .cpus = 1}, .trials = {}, .failure = {}});
  diagnosis.experiment.cells.push_back(
      {.variant = 0, .setting = {.threads = 0, .cpus = 1, .copies = 2}, .trials = {}, .failure = {}});
  const auto repetitions = repetitions_of(diagnosis, {4, 5});
  ASSERT_EQ(repetitions.size(), 2u);
  EXPECT_EQ(repetitions[0].what, "freehold, 1 CPU");
  EXPECT_EQ(repetitions[0].shell, "env LD_PRELOAD=/freehold.so taskset -c 4 ./prog 'two words' < 'in put'");
  EXPECT_EQ(repetitions[1].shell,
            "taskset -c 4 ./prog 'two words' < 'in put' & taskset -c 5 ./prog 'two words' < 'in put' & wait");
}

TEST(Refusals, EachReason_OneLineWithTheWayOut) {
  const auto line = [](Refusal why) { return failure_of(Refused(why, "detail\nof it", "more", 7), "prog", {}, 2); };
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Refusal::kNoTemporaryFolder); ++i) {
    const std::string text = line(static_cast<Refusal>(i)).what();
    EXPECT_FALSE(text.empty()) << i;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_NE(std::string(line(Refusal::kNoEnd).what()).find("--budget 70"), std::string::npos);
  EXPECT_NE(std::string(line(Refusal::kFails).what()).find("--allow-failure"), std::string::npos);
  EXPECT_NE(std::string(line(Refusal::kNotReady).what()).find("--ready 'sleep 3'"), std::string::npos);
  EXPECT_EQ(line(Refusal::kNotExecutable).exit_code(), kExitCannotExecute);
  EXPECT_EQ(line(Refusal::kInterruptedAtFirst).exit_code(), 130);
  EXPECT_EQ(line(Refusal::kFailsLater).exit_code(), kExitRefused);
  EXPECT_EQ(line(Refusal::kTooShort).exit_code(), kExitRefused);
}

}  // namespace
}  // namespace freehold::doctor::command
