// SPDX-License-Identifier: MIT
// Before main, after exit, libraries that come and go, tools that run the program in their own way.
#include "tests/stress/stress.hpp"
#include "tests/support/emulated.hpp"

namespace freehold::test {
namespace {

void expect_passes_from_first_to_last(const Command& command) {
  const Outcome outcome = expect_passes(command);
  EXPECT_EQ(figure_of(outcome, "after_everything"), 1) << outcome.describe();
}

TEST(Lifecycle, BeforeMainAndAfterExit_MallocWorks) {
  expect_passes_from_first_to_last(scenario({"lifecycle_before_main_and_after_exit"}));
}
TEST(Lifecycle, LinkedBeforeMainAndAfterExit_MallocWorks) {
  expect_passes_from_first_to_last(
      under(Malloc::kSystem, {FREEHOLD_SCENARIO_LINKED, "lifecycle_before_main_and_after_exit"}));
}
TEST(Lifecycle, LinkedAndPreloaded_MallocWorks) {
  expect_passes_from_first_to_last(
      under(Malloc::kFreehold, {FREEHOLD_SCENARIO_LINKED, "lifecycle_before_main_and_after_exit"}));
}

TEST(Lifecycle, LoadedByDlopen_WorksBesideTheProgramsMalloc) {
  expect_passes(scenario({"lifecycle_dlopen", FREEHOLD_LIBRARY}, Malloc::kSystem));
}
TEST(Lifecycle, ClosedWhileThreadsHaveCaches_TheyEndAndForkWorks) {
  expect_passes(scenario({"lifecycle_dlclose", FREEHOLD_LIBRARY}, Malloc::kSystem));
}
TEST(Lifecycle, PluginsComeAndGo_MallocWorks) { expect_passes(scenario({"lifecycle_plugin", FREEHOLD_PLUGIN})); }
TEST(Lifecycle, ProgramInCLoadsPluginInCpp_ItCatchesBadAlloc) {
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "plugin", FREEHOLD_PLUGIN}));
}
// A plugin that prefers its own libraries' functions (RTLD_DEEPBIND) would call libc's malloc: blocks cross all the same.
TEST(Lifecycle, PluginThatBindsDeeply_BlocksCrossInBothDirections) {
  const std::string path = FREEHOLD_PLUGIN;
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "deepbind", path.substr(path.rfind('/') + 1)}));
}
TEST(Lifecycle, FirstMallocAndLater_LeaveErrnoAlone) {
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "errno"}));
}

// A look at the caches found slots that a thread was about to give back, and said that they were freed twice; checked mode
// waited for ever for a lock that such a thread held.
TEST(Lifecycle, ExitBesideAThreadThatWasStoppedInMalloc_EndsAsUsual) {
  for (const auto& [checked, times] : {std::pair("0", "150"), std::pair("1", "20")}) {
    Command command = scenario({"lifecycle_exit_beside_a_stopped_thread", emulated() ? "5" : times});
    command.environment.emplace_back("FREEHOLD_CHECK", checked);
    expect_passes(command);
  }
}

class Valgrind : public ::testing::TestWithParam<const char*> {};
TEST_P(Valgrind, Program_RunsAsWithout) {
  FREEHOLD_SKIP_IF_EMULATED("valgrind is this machine's");
  Command command = under(Malloc::kFreehold,
                          {"valgrind", "-q", std::string("--tool=") + GetParam(), FREEHOLD_SCENARIO, "lifecycle_smoke"});
  if (std::string(GetParam()) == "callgrind")
    command.argv.insert(command.argv.begin() + 2, "--callgrind-out-file=/dev/null");
  const Outcome outcome = run(command);
  if (outcome.exit_code == 127) GTEST_SKIP() << "valgrind is not installed";
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
}
INSTANTIATE_TEST_SUITE_P(Tool, Valgrind, ::testing::Values("none", "callgrind"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace freehold::test
