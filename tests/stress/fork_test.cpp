// SPDX-License-Identifier: MIT
// fork while all threads allocate: the child allocates, frees, starts threads, exits; nothing hangs, nothing is lost.
#include "tests/stress/stress.hpp"

namespace freehold::test {
namespace {

TEST(Fork, AllThreadsAllocating_ChildAllocatesAndExits) { expect_passes("fork_under_load"); }
TEST(Fork, AmidFreesThatEndSamplesOfAProfile_ChildGivesBackEachSlotOnce) {
  Command command = scenario({"fork_beside_full_bins"});
  command.environment.emplace_back("FREEHOLD_PROFILE", "1024");
  command.environment.emplace_back("FREEHOLD_PROFILE_FILE", "/dev/null");
  expect_passes(command);
}
TEST(Fork, ManyThreadsForkAtOnce_ChildrenAllocate) { expect_passes("fork_from_many_threads"); }
TEST(Fork, ThreadsComeAndGo_ChildAllocates) {
  // https://gitlab.com/qemu-project/qemu/-/issues/358: the child never unlocks what a thread that begins holds in QEMU.
  FREEHOLD_SKIP_IF_EMULATED("a child that begins a thread hangs if another thread began amid the fork");
  expect_passes("fork_amid_short_threads");
}
TEST(Fork, BlocksOfThreadsLeftBehind_ChildFreesThem) { expect_passes("fork_child_frees_blocks_of_other_threads"); }
TEST(Fork, SixtyGenerations_MemoryDoesNotAddUp) {
  FREEHOLD_SKIP_IF_EMULATED("the resident memory is QEMU's, too");
  expect_passes(without_huge_pages(scenario({"fork_chain_of_daemons"})));
}
TEST(Fork, HandlersOfTheProgram_MayAllocate) { expect_passes("fork_handlers_allocate"); }
TEST(Fork, SpawnAndVforkUnderLoad_Work) { expect_passes("spawn_under_load"); }
TEST(Fork, ChildrenOfVforkAllocate_NoBlockHasTwoOwners) {
  for (const char* const caches : {"cpu", "thread"}) {
    Command command = scenario({"vfork_allocates"});
    command.environment.emplace_back("FREEHOLD_CACHE", caches);
    expect_passes(command);
  }
}

TEST(Fork, HandlersRegisteredBeforeTheFirstMalloc_MayAllocate) {
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "atfork"}));
}

TEST(Fork, HandlersRegisteredBeforeTheFirstMalloc_MayWaitForThreadsThatAllocate) {
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "atfork_lock"}));
}
TEST(Fork, OthersFlushAllStreams_NobodyWaitsForEver) {
  expect_passes(scenario({"fork_amid_stdio", fewer_if_emulated(150, 30)}));
}
TEST(Fork, OthersLookUpNamesAndLoadLibraries_NobodyWaitsForEver) {
  expect_passes(scenario({"fork_amid_names_and_libraries", FREEHOLD_PLUGIN}));
}
// A fork alone takes 1 to 2 ms there, malloc_trim 50 to 150.
TEST(Fork, AmidAnothersLongTrim_DoesNotWaitForItsEnd) {
  Command command = scenario({"fork_amid_trim"});
  command.environment.emplace_back("FREEHOLD_CACHE", "thread");
  command.environment.emplace_back("FREEHOLD_PURGE_DELAY_MS", "1000");
  const Outcome outcome = expect_passes(command);
  EXPECT_GE(figure_of(outcome, "long_trims"), 3) << outcome.describe();
  EXPECT_GE(2 * figure_of(outcome, "forks_amid_trim"), figure_of(outcome, "long_trims")) << outcome.describe();
}
TEST(Fork, SignalHandlerOfOneThread_ParentAndChildGoOn) {
  expect_passes(scenario({"fork_from_signal_handler", fewer_if_emulated(200, 40)}));
}
TEST(Fork, SignalHandlerAmidStatistics_NobodyWaitsForEver) {
  Command command = scenario({"fork_from_signal_handler_amid_statistics"});
  command.timeout_seconds = 20;
  expect_passes(command);
}
TEST(Fork, SignalHandlerBesidePurgerThread_ChildGoesOnAndForksAgain) {
  const int forks = emulated() ? 60 : 300;
  Command command = scenario({"fork_from_signal_handler_beside_purger_thread", std::to_string(forks)});
  command.environment.emplace_back("FREEHOLD_BACKGROUND_THREAD", "on");
  command.environment.emplace_back("FREEHOLD_PURGE_DELAY_MS", "1");
  EXPECT_GE(figure_of(command, "forks"), forks);
}
// It waits for the helper thread, which cannot run unless it sleeps. With sched_yield alone: a second, if the system
// throttles real-time threads, and else for ever.
TEST(Fork, ByARealTimeThread_WaitsForNoThreadThatItPreempts) {
  Command command = scenario({"threads_fork_by_a_real_time_thread"});
  command.environment.emplace_back("FREEHOLD_BACKGROUND_THREAD", "on");
  command.environment.emplace_back("FREEHOLD_PURGE_DELAY_MS", "1");
  const Outcome outcome = expect_passes(command);
  if (outcome.figures().contains("not_allowed")) GTEST_SKIP() << "real-time threads are not allowed here";
  EXPECT_LE(figure_of(outcome, "longest_ms"), 300);
}

}  // namespace
}  // namespace freehold::test
