// SPDX-License-Identifier: MIT
// Misuse ends the process with one fixed line on standard error and SIGABRT: each kind in a separate process.
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/process.hpp"

namespace freehold::test {
namespace {

Outcome run_misuse(const std::string& kind) {
  Command command{{FREEHOLD_MISUSE_PROGRAM, kind}};
  command.environment = {{"LD_PRELOAD", FREEHOLD_LIBRARY}};
  command.timeout_seconds = 30;
  return run(command);
}

struct Case {
  const char* kind;
  const char* line;  // what is printed before the address; alternatives as in a regular expression
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }
class MisuseOfMalloc : public ::testing::TestWithParam<Case> {};

TEST_P(MisuseOfMalloc, Seen_OneLineAndAbort) {
  const Outcome outcome = run_misuse(GetParam().kind);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGABRT) << outcome.describe();
  const std::regex expected(std::string("freehold: (") + GetParam().line + "): 0x[0-9a-f]+\n");
  EXPECT_TRUE(std::regex_match(outcome.err, expected)) << outcome.err;
}

constexpr const char* kDouble = "double free";
constexpr const char* kForeign = "free of a pointer that is not from this allocator";
constexpr const char* kInterior = "free of a pointer into the middle of a block";
// Pages that were given back hold no block any more: it is not known that one began there.
constexpr const char* kDoubleOrNoBlock = "double free|free of a pointer that is not from this allocator";

INSTANTIATE_TEST_SUITE_P(
    All, MisuseOfMalloc,
    ::testing::Values(Case{"double_free_then_trim", kDouble}, Case{"double_free_of_another_size_then_trim", kDouble},
                      Case{"double_free_then_thread_exit", kDouble}, Case{"double_free_then_more_frees", kDouble},
                      Case{"double_free_by_two_threads", kDouble}, Case{"double_free_after_drain", kDouble},
                      Case{"double_free_after_all_was_given_back", kDoubleOrNoBlock},
                      Case{"double_free_of_a_run", kDoubleOrNoBlock}, Case{"double_free_of_a_large_block", kDoubleOrNoBlock},
                      Case{"double_free_of_a_run_beside_others", kDoubleOrNoBlock}, Case{"free_of_the_stack", kForeign},
                      Case{"free_of_static_data", kForeign}, Case{"free_of_code", kForeign},
                      Case{"free_of_mapped_memory", kForeign}, Case{"free_of_a_small_number", kForeign},
                      Case{"free_of_the_last_address", kForeign}, Case{"realloc_of_the_stack", kForeign},
                      Case{"delete_of_static_data", kForeign}, Case{"free_inside_a_run", kInterior},
                      Case{"free_inside_a_run_at_a_span", kInterior}, Case{"free_inside_a_large_block", kInterior},
                      Case{"free_inside_a_small_block", kInterior}, Case{"free_of_an_odd_address", kInterior},
                      Case{"realloc_inside_a_run", kInterior}),
    [](const auto& instance) { return instance.param.kind; });

TEST(MisuseOfMallocControl, None_EndsNormally) {
  const Outcome outcome = run_misuse("none");
  EXPECT_TRUE(outcome.ok()) << outcome.describe();
  EXPECT_EQ(outcome.out, "still alive\n");
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace freehold::test
