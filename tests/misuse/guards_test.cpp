// SPDX-License-Identifier: MIT
// Sampled guards in whole programs: each kind of misuse in a separate process, with every allocation guarded.
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/emulated.hpp"
#include "tests/support/process.hpp"

namespace freehold::test {
namespace {

Outcome run_guarded(const std::string& kind, const std::string& rate = "1", const char* program = FREEHOLD_GUARDS_PROGRAM) {
  Command command{{program, kind}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}, {"FREEHOLD_GUARD_RATE", rate}};
  command.timeout_seconds = 60;
  return run(command);
}

bool has(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

struct Case {
  const char* kind;
  int signal;
  const char* line;    // what is printed before the address; alternatives as in a regular expression
  const char* traces;  // who did what, in this order
  const char* program = FREEHOLD_MISUSE_PROGRAM;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }
class GuardedMisuse : public ::testing::TestWithParam<Case> {};

TEST_P(GuardedMisuse, Seen_OneLineTheBlockAndItsStacks) {
  const Case& c = GetParam();
  const Outcome outcome = run_guarded(c.kind, "1", c.program);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(c.signal == 0 || outcome.signal == c.signal) << outcome.describe();
  EXPECT_TRUE(outcome.signal == SIGSEGV || outcome.signal == SIGABRT) << outcome.describe();
  // One line of the fixed form, then details of which each stack has the program's own code in it.
  const std::string stack = "(?:freehold:     #\\d+ 0x[0-9a-f]+(?: /[^\\n]*\\+0x[0-9a-f]+)?\\n)+";
  std::string expected =
      std::string("^freehold: (?:") + c.line + "): 0x[0-9a-f]+\\n" +
      "freehold:   \\d+ bytes (?:before|behind|into) a block of \\d+ bytes at 0x[0-9a-f]+\\n" +
      "(?:freehold:   bytes from the first one on that was written:\\nfreehold:   0x[0-9a-f]+:[^\\n]*\\n)?";
  std::istringstream deeds(c.traces);
  for (std::string deed; std::getline(deeds, deed, ',');) {
#if !defined(__x86_64__)  // the only processor of which os/fault.hpp knows whether a fault was a write
    if (outcome.signal == SIGSEGV) deed = std::regex_replace(deed, std::regex("written|read"), "accessed");
#endif
    expected += "freehold:   (?:" + deed + ") by thread \\d+:\\n" + stack;
  }
  EXPECT_TRUE(has(outcome.err, expected + kEnd)) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "#\\d+ 0x[0-9a-f]+ /[^\\n]*misuse_(?:guards|malloc)_program\\+0x")) << outcome.err;
}

constexpr const char* kFreed = "use of a freed block";
constexpr const char* kBehind = "access behind the end of a block";
constexpr const char* kBefore = "access before the beginning of a block";
// By where the block lies in its page, which is random: the write is refused, or the free sees the byte.
constexpr const char* kSomehowBehind = "access behind the end of a block|write behind the end of a block";
constexpr const char* kSomehowBefore = "access before the beginning of a block|write before the beginning of a block";
constexpr const char* kDouble = "double free";
constexpr const char* kInterior = "free of a pointer into the middle of a block";
constexpr int kEither = 0;

INSTANTIATE_TEST_SUITE_P(
    All, GuardedMisuse,
    ::testing::Values(
        Case{"write_after_free_small_seen_at_exit", SIGSEGV, kFreed, "allocated,freed,written"},
        Case{"read_after_free_small", SIGSEGV, kFreed, "allocated,freed,read"},
        Case{"write_after_free_by_another_thread", SIGSEGV, kFreed, "allocated,freed,written"},
        Case{"write_after_free_and_reuse", SIGSEGV, kFreed, "allocated,freed,written"},
        Case{"write_after_realloc_moved", SIGSEGV, kFreed, "allocated,freed,written"},
        Case{"write_after_delete", SIGSEGV, kFreed, "allocated,freed,written"},
        Case{"use_after_free_in_a_child", SIGSEGV, kFreed, "allocated,freed,written", FREEHOLD_GUARDS_PROGRAM},
        Case{"use_after_free_on_a_small_signal_stack", SIGSEGV, kFreed, "allocated,freed,written", FREEHOLD_GUARDS_PROGRAM},
        Case{"write_behind_a_page", SIGSEGV, kBehind, "allocated,written", FREEHOLD_GUARDS_PROGRAM},
        Case{"read_before_a_page", SIGSEGV, kBefore, "allocated,read", FREEHOLD_GUARDS_PROGRAM},
        Case{"overflow_full_class_by_1", kEither, kSomehowBehind, "allocated,written|freed"},
        Case{"overflow_small_by_1", SIGABRT, "write behind the end of a block", "allocated,freed"},
        Case{"overflow_by_many", SIGSEGV, kBehind, "allocated,written", FREEHOLD_GUARDS_PROGRAM},
        Case{"overflow_after_a_smaller_realloc", kEither, kSomehowBehind, "allocated,written|freed",
             FREEHOLD_GUARDS_PROGRAM},
        Case{"underflow_full_class_by_1", kEither, kSomehowBefore, "allocated,written|freed"},
        Case{"overflow_of_an_aligned_block", kEither, kSomehowBehind, "allocated,written|freed", FREEHOLD_GUARDS_PROGRAM},
        Case{"double_free_at_once", SIGABRT, kDouble, "allocated,freed,freed again"},
        Case{"double_free_by_another_thread", SIGABRT, kDouble, "allocated,freed,freed again"},
        Case{"free_inside_a_small_block", SIGABRT, kInterior, "allocated,freed"},
        Case{"free_of_an_odd_address", SIGABRT, kInterior, "allocated,freed"},
        Case{"double_free_by_realloc", SIGABRT, kDouble, "allocated,freed,used"},
        Case{"realloc_inside_a_small_block", SIGABRT, kInterior, "allocated,used"},
        Case{"size_of_freed", SIGABRT, kDouble, "allocated,freed,used", FREEHOLD_GUARDS_PROGRAM}),
    [](const auto& instance) { return instance.param.kind; });

class GuardedControl : public ::testing::TestWithParam<const char*> {};
TEST_P(GuardedControl, NoMisuse_EndsNormally) {
  const Outcome outcome = run_guarded(GetParam());
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
}
INSTANTIATE_TEST_SUITE_P(All, GuardedControl,
                         ::testing::Values("none", "many_threads", "realloc_to_the_same_size", "freed_by_parent_and_child",
                                           "refused_by_the_system", "ignored_and_sent"),
                         [](const auto& instance) { return std::string(instance.param); });

// Faults that are none of ours end the process as they would without.
TEST(GuardedFaults, NoneOfOurs_DefaultAndNoReport) {
  for (const auto& [kind, signal] :
       {std::pair{"null_pointer", SIGSEGV}, {"signal_from_elsewhere", SIGSEGV}, {"bus_error", SIGBUS}}) {
    const Outcome outcome = run_guarded(kind);
    EXPECT_EQ(outcome.signal, signal) << outcome.describe();
    EXPECT_EQ(outcome.err, "") << kind;
  }
}

TEST(GuardedFaults, ProgramInstallsAHandlerLater_ItsOwnWins) {
  const Outcome outcome = run_guarded("own_handler_later");
  EXPECT_EQ(outcome.exit_code, 42) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
}

TEST(GuardedFaults, ProgramsHandlerCallsTheFormerOne_Both) {
  const Outcome outcome = run_guarded("own_handler_that_chains");
  EXPECT_EQ(outcome.signal, SIGSEGV) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "^my own lines first\nfreehold: use of a freed block: 0x")) << outcome.err;
}

TEST(GuardedFaults, ForkWhileAnotherThreadReports_TheChildReports) {
  const Outcome outcome = run_guarded("fork_amid_a_report");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "^freehold: use of a freed block: 0x")) << outcome.err;
}

TEST(GuardedFaults, CancelledWhileItReports_TheReportEndsTheProgram) {
  const Outcome outcome = run_guarded("cancelled_amid_a_report");
  EXPECT_EQ(outcome.signal, SIGSEGV) << outcome.describe();
}

TEST(GuardRate, OneInN_SoManyAreGuarded) {
  for (const double rate : {20.0, 500.0}) {
    const Outcome outcome = run_guarded("count_guarded", std::to_string(static_cast<int>(rate)));
    ASSERT_TRUE(outcome.ok()) << outcome.describe();
    const auto figures = outcome.figures();
    const double expected = figures.at("all") / rate;
    // A refill brings 30 slots or so, one of which is chosen at most: at a rate of 20 one in 32 or less.
    EXPECT_GT(figures.at("guarded"), expected * (rate < 64 ? 0.3 : 0.75)) << outcome.out;
    EXPECT_LT(figures.at("guarded"), expected * 1.25) << outcome.out;
  }
}

TEST(GuardRate, EveryCall_AllAreGuardedWhileThereAreSlots) {
  const auto figures = run_guarded("count_few_guarded", "1").figures();
  EXPECT_EQ(figures.at("guarded"), figures.at("all"));
}

TEST(Options, ThatMakeNoSense_OneLineEach) {
  Command command{{FREEHOLD_GUARDS_PROGRAM, "count_guarded"}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}, {"FREEHOLD_PREFAULT", "2"},
                         {"FREEHOLD_GUARD_RATE", "often"}, {"FREEHOLD_LIVE", "7"},
                         {"FREEHOLD_CGROUP", "/nonexist"}, {"FREEHOLD_VERBOSE", "2"}};
  command.timeout_seconds = 60;
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.err,
            "freehold: ignoring FREEHOLD_PREFAULT: expected 0 or 1\n"
            "freehold: ignoring FREEHOLD_GUARD_RATE: expected a whole number\n"
            "freehold: ignoring FREEHOLD_LIVE: expected 0 or 1\n"
            "freehold: ignoring FREEHOLD_VERBOSE: expected 0 or 1\n"
            "freehold: ignoring FREEHOLD_CGROUP: expected a folder with memory.max or memory.limit_in_bytes, or off\n");
  EXPECT_EQ(outcome.figures().at("guarded"), 0);
}

}  // namespace
}  // namespace freehold::test
