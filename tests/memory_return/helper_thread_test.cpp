// SPDX-License-Identifier: MIT
// A program with threads may get one of Freehold's, which gives memory back. MiB are of private resident memory.
#include "tests/memory_return/memory_return.hpp"

namespace freehold::test {
namespace {

TEST(HelperThread, ProgramWithAThread_OneThatSleepsWhenAllIsGivenBack) {
  const Outcome outcome = run_and_print({"helper_thread_gives_back"});
  EXPECT_LE(figure_of(outcome, "resident_mib"), 16);
  EXPECT_LE(figure_of(outcome, "extra_threads"), 1);
  EXPECT_EQ(figure_of(outcome, "all_signals_blocked"), 1);
  EXPECT_EQ(figure_of(outcome, "wakeups_when_idle"), 0);
}
// Threads that share the caches of the CPUs have no cache of their own, by which they would be counted.
Command with_caches_of_cpus(const char* name) {
  Command command = case_of({name});
  command.environment.emplace_back("FREEHOLD_CACHE", "cpu");
  return command;
}
TEST(HelperThread, CachesOfCpus_OneThatGivesBack) {
  const Outcome outcome = run_and_print(with_caches_of_cpus("helper_thread_gives_back"));
  EXPECT_LE(figure_of(outcome, "resident_mib"), 16);
  EXPECT_EQ(figure_of(outcome, "extra_threads"), 1);
  EXPECT_EQ(figure_of(outcome, "wakeups_when_idle"), 0);
}
TEST(HelperThread, CachesOfCpusAndFork_ParentAndChildGiveBack) {
  const Outcome outcome = run_and_print(with_caches_of_cpus("helper_thread_and_fork"));
  EXPECT_LE(figure_of(outcome, "resident_mib"), 16);
  EXPECT_LE(figure_of(outcome, "child_resident_mib"), 16);
}
TEST(HelperThread, CachesOfCpusAndLastOtherThreadJoined_ProgramIsAloneAndKeepsLittle) {
  EXPECT_LE(figure_of(run_and_print(with_caches_of_cpus("purger_thread_alone_keeps_little")), "resident_mib"), 8);
  EXPECT_EQ(figure_of(run_and_print(with_caches_of_cpus("purger_thread_alone_after_join")), "not_alone"), 0);
}
TEST(HelperThread, Forbidden_IsNotThere) {
  Command command = case_of({"helper_thread_gives_back"});
  command.environment.emplace_back("FREEHOLD_BACKGROUND_THREAD", "off");
  EXPECT_EQ(figure_of(run_and_print(command), "extra_threads"), 0);
}
TEST(HelperThread, Fork_ParentAndChildGiveBack) {
  const Outcome outcome = run_and_print({"helper_thread_and_fork"});
  EXPECT_LE(figure_of(outcome, "resident_mib"), 16);
  EXPECT_LE(figure_of(outcome, "child_resident_mib"), 16);
}
TEST(HelperThread, ShortThreads_AtMostOneExtra) {
  EXPECT_LE(figure_of(run_and_print({"helper_thread_beside_short_threads"}), "extra_threads"), 1);
}
// The purger lives on beside the last thread, whose frees took three times glibc's CPU time without it.
TEST(HelperThread, MainEndsByPthreadExit_GivesBackAndProcessEnds) {
  Command command = case_of({"helper_thread_last_to_live"});
  command.timeout_seconds = 20;
  EXPECT_EQ(figure_of(run_and_print(command), "threads"), 3);
}

}  // namespace
}  // namespace freehold::test
