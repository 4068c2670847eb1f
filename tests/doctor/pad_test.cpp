// SPDX-License-Identifier: MIT
// Blocks that are padded: none shares a cache line with another one, and programs do not notice.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/process.hpp"

namespace freehold {
namespace {

test::Outcome run(const std::vector<std::string>& words, const std::string& preload) {
  return test::run({.argv = words, .environment = {{"LD_PRELOAD", preload}}});
}

TEST(Pad, SmallBlocks_NoTwoOnOneLine) {
  const test::Outcome padded = run({FREEHOLD_SUBJECT, "lines"}, FREEHOLD_PAD);
  EXPECT_EQ(padded.exit_code, 0) << padded.err;
  EXPECT_EQ(padded.out, "0 lines shared\nok\n");
  const test::Outcome plain = run({FREEHOLD_SUBJECT, "lines"}, "");
  EXPECT_NE(plain.out, padded.out) << "there was nothing to pad";
}

// A delay of each call, and blocks that stay where they were.
TEST(Pad, Delay_CallsTakeLongerAndBlocksAreNotPadded) {
  const auto with_delay = [](const std::string& ns) {
    return test::run(
        {.argv = {FREEHOLD_SUBJECT, "lines"}, .environment = {{"LD_PRELOAD", FREEHOLD_PAD}, {"FREEHOLD_DELAY_NS", ns}}});
  };
  const auto seconds = [&](const std::string& ns) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(with_delay(ns).exit_code, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  EXPECT_EQ(with_delay("10").out, run({FREEHOLD_SUBJECT, "lines"}, "").out);
  EXPECT_GT(seconds("2e5"), 0.05) << "hundreds of calls, 200 us each";
}

TEST(Pad, EveryEntryPoint_Works) {
  const test::Outcome padded = run({FREEHOLD_SUBJECT, "entries"}, FREEHOLD_PAD);
  EXPECT_EQ(padded.exit_code, 0) << padded.err;
  EXPECT_EQ(padded.out, "ok\n");
}

TEST(Pad, Impossible_StaysImpossible) {
  const test::Outcome padded = run({FREEHOLD_SUBJECT, "impossible"}, FREEHOLD_PAD);
  EXPECT_EQ(padded.exit_code, 0) << padded.err;
  EXPECT_EQ(padded.out, "ok\n");
}

TEST(Pad, AProgramOfOthers_RunsAsBefore) {
  const std::vector<std::string> words{"/bin/sh", "-c", "printf '%s\\n' c b a | sort | tr '\\n' ' '"};
  EXPECT_EQ(run(words, FREEHOLD_PAD).out, "a b c ");
}

}  // namespace
}  // namespace freehold
