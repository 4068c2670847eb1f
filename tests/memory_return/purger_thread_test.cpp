// SPDX-License-Identifier: MIT
// The purger thread takes no CPU where nothing can be done, ends no process on its own stack, and leaves processes and
// threads as they would be without it. MiB are of private resident memory.
#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

Command with(const char* name, const char* variable, const char* value) {
  Command command = case_of({name});
  command.environment.emplace_back(variable, value);
  return command;
}

TEST(PurgerThread, MlockallAndScatteredFreeMemory_SleepsAndForkReturns) {
  const Outcome outcome = run(case_of({"purger_thread_locked"}));
  std::cout << outcome.out << std::flush;
  if (outcome.figures().contains("not_allowed")) GTEST_SKIP() << "mlockall is not allowed here";
  EXPECT_LE(figure_of(outcome, "cpu_seconds"), 0.5);
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
}
TEST(PurgerThread, DelayOfAges_Sleeps) {
  const Outcome outcome =
      run_and_print(with("purger_thread_waits_for_ages", "FREEHOLD_PURGE_DELAY_MS", "576460752303423488"));
  EXPECT_LE(figure_of(outcome, "cpu_seconds"), 0.1);
}

TEST(PurgerThread, AskedForAndMainEndsByPthreadExit_ProcessEnds) {
  Command command = with("helper_thread_last_to_live", "FREEHOLD_BACKGROUND_THREAD", "on");
  command.timeout_seconds = 15;
  run_and_print(command);
}
TEST(PurgerThread, TwoLastThreadsEndTogether_ExitHandlersHaveALargeStack) {
  EXPECT_EQ(figure_of(run_and_print({"purger_thread_two_workers_end"}), "ended_well"), 20);
}

TEST(PurgerThread, ChildWithOneThread_KeepsLittleAfterASawtooth) {
  EXPECT_LE(figure_of(run_and_print({"purger_thread_child_saws"}), "child_resident_mib"), 80);
}

TEST(PurgerThread, ThreadsSpawnedAndJoined_FaultAsWithoutIt) {
  const double faults = figure_of(run_and_print({"purger_thread_spawn_join_faults"}), "faults");
  const double without =
      figure_of(run_and_print(with("purger_thread_spawn_join_faults", "FREEHOLD_BACKGROUND_THREAD", "off")), "faults");
  EXPECT_LE(faults, 2 * without);
}
TEST(PurgerThread, ThreadThatSawsJoined_TheOneLeftKeepsLittle) {
  EXPECT_LE(figure_of(run_and_print({"purger_thread_alone_keeps_little"}), "resident_mib"), 8);
}
TEST(PurgerThread, LastOtherThreadJoined_ProgramHasOneThread) {
  const Outcome outcome = run_and_print({"purger_thread_alone_after_join"});
  EXPECT_LE(figure_of(outcome, "second_looks"), 10);  // out of 20; glibc: 0, on a busy machine, too
  EXPECT_EQ(figure_of(outcome, "not_alone"), 0);
}

// libc takes thread-local storage from the stack, and so many bytes more as it is told to. What is left for calls and for a
// handler of signals, whose frame depends on the CPU, is very little somewhere between the two ends.
TEST(PurgerThread, LargeThreadLocalStorageAndSetuid_ProgramSurvives) {
  for (int bytes = 0; bytes <= 7 * 512; bytes += 512) {
    Command command = case_of({});
    command.argv = {FREEHOLD_LARGE_TLS};
    command.environment.emplace_back("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=" + std::to_string(bytes));
    const Outcome outcome = run(command);
    if (outcome.figures().contains("not_allowed")) GTEST_SKIP() << "setuid is not allowed here";
    EXPECT_EQ(figure_of(outcome, "survived"), 1) << bytes << ": " << outcome.describe();
  }
}

TEST(PurgerThread, LastCallFreesAMapping_MemoryGoesBack) {
  EXPECT_LE(figure_of(run_and_print({"purger_thread_last_call_frees"}), "kept_mib"), 12);
}
TEST(PurgerThread, LastCallShrinksABlock_MemoryGoesBack) {
  EXPECT_LE(figure_of(run_and_print({"purger_thread_last_call_shrinks"}), "kept_mib"), 12);
}
TEST(PurgerThread, LastCallsShrinkBlocks_MemoryGoesBack) {
  EXPECT_LE(figure_of(run_and_print({"purger_thread_last_calls_shrink"}), "kept_mib"), 12);
}

}  // namespace
}  // namespace freehold::test
