// SPDX-License-Identifier: MIT
// Many threads, short threads, idle threads, threads that end badly: nothing is lost, and what a thread costs is bounded.
#include "tests/stress/stress.hpp"

namespace freehold::test {
namespace {

TEST(Threads, TenThousandOneAfterAnother_Work) {
  expect_passes(scenario({"threads_one_after_another", fewer_if_emulated(10'000, 500)}));
}

// A process under QEMU holds QEMU's memory, too: its translations, its tables of the program's pages, and 280 KiB of each
// thread that has ended (7.2, with glibc's malloc, too).
#define SKIP_IF_RESIDENT_IS_EMULATORS() FREEHOLD_SKIP_IF_EMULATED("the resident memory is QEMU's, too")

TEST(Threads, TwoThousandAlive_CostLittleEach) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  EXPECT_LE(figure_of(scenario({"threads_two_thousand_alive"}), "resident_mib"), 64);  // stacks are 20 MiB of it
}

TEST(Threads, HundredThousandShortOnes_LeakNothing) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  // 90,000 threads; a leak of one cache line each would be 5.5 MiB.
  EXPECT_LE(figure_of(without_huge_pages(scenario({"threads_hundred_thousand_leak_nothing"})), "growth_mib"), 4);
}

TEST(Threads, BlocksFreedByHeirs_LeakNothing) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  EXPECT_LE(figure_of(without_huge_pages(scenario({"threads_heirs_leak_nothing"})), "growth_mib"), 4);
}

TEST(Threads, FiveHundredIdle_HoldAtMost32MiB) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  const Outcome outcome = expect_passes("threads_five_hundred_idle");
  EXPECT_LE(figure_of(outcome, "held_mib"), 32);
  EXPECT_LE(figure_of(outcome, "after_exit_mib"), 8);
}

TEST(Threads, SmallestStack_IsEnough) { expect_passes("threads_with_the_smallest_stack"); }

TEST(Threads, DestructorsAllocateAndFree_NothingLostNothingLeaked) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  EXPECT_LE(figure_of(without_huge_pages(scenario({"threads_destructors_allocate_and_free"})), "growth_mib"), 2);
}

TEST(Threads, Cancelled_LoseNothing) { expect_passes("threads_cancelled"); }

TEST(Threads, MainReturnsBeforeThem_NoCrash) {
  for (int i = 0; i < 10; ++i) expect_passes("threads_outlive_main");
}

TEST(Threads, SignalsAllTheTime_DisturbNothing) { expect_passes("threads_interrupted_by_signals"); }

Command stopped_by_signals(const char* background_thread) {
  Command command = scenario({"threads_stopped_by_signals"});
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY},
                         {"FREEHOLD_BACKGROUND_THREAD", background_thread},
                         {"FREEHOLD_PURGE_DELAY_MS", "10"}};
  return command;
}
TEST(Threads, StoppedBySignalsOfLibc_AllAnswerOrHaveEnded) {
  EXPECT_GE(figure_of(stopped_by_signals("auto"), "helpers"), 3);
}
TEST(Threads, StoppedByTheSystemsCall_AllAnswerWithoutTheHelper) {  // the way out that docs/tuning.md names
  Command command = stopped_by_signals("off");
  command.argv.emplace_back("raw");
  EXPECT_EQ(figure_of(command, "helpers"), 0);
}

TEST(Threads, ProgramTookAllKeys_TheyHaveCachesAndGiveThemBack) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "keys"}));
}
// No cache, and no purger for a program that has one thread again.
TEST(Threads, FirstMallocInTheLastRoundOfDestructors_LeaksNothing) {
  SKIP_IF_RESIDENT_IS_EMULATORS();
  expect_passes(under(Malloc::kFreehold, {FREEHOLD_PLAIN_C, "last_round"}));
}

}  // namespace
}  // namespace freehold::test
