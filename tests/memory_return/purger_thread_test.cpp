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

}  // namespace
}  // namespace freehold::test
