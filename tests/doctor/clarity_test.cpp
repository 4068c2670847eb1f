// SPDX-License-Identifier: MIT
// Which verdicts end the trials before the budget does.
#include <gtest/gtest.h>

#include "tests/doctor/made_experiment.hpp"
#include "tools/doctor/run/looks.hpp"
#include "tools/doctor/verdict/clarity.hpp"

namespace freehold::doctor {
namespace {

// Trials end when more of them would not change the verdict, and go on while they might.
TEST(Clarity, LimitsAreFarFromTheThresholds_Clear) {
  Attribution recorded;
  recorded.lock_wait_share = 0.5;
  const auto clear = [&](Made made) { return is_clear(made.experiment_, made.verdict(&recorded)); };
  EXPECT_TRUE(clear(Made().takes(0, 1, 0.6).treated(1, 0.6).copies(1))) << "own lock";
  EXPECT_FALSE(clear(Made(0.1, 3).takes(0, 1, 0.6).treated(1, 0.6).copies(1))) << "trials differ";
  const Made untried = Made().takes(0, 1, 0.6).takes(2, 1, 0.6).takes(3, 1, 0.6).copies(1);
  EXPECT_TRUE(clear(untried)) << "no malloc can help";
  recorded.cpu_share = 0.2;
  EXPECT_FALSE(clear(untried)) << "jemalloc might";
  recorded.cpu_share = recorded.lock_wait_share = 0;
  EXPECT_TRUE(clear(Made().takes(0, 1, 0.255).treated(1, 0.255).copies(1))) << "it scales";
  EXPECT_FALSE(clear(Made().takes(0, 1, 0.3).treated(1, 0.3).copies(1))) << "a sixth is lost";
  recorded.cpu_share = 0.5, recorded.blocked_share = 0.2;
  EXPECT_TRUE(
      clear(Made().takes(0, 1, 0.8).takes(1, 1, 0.8).takes(2, 1, 0.8).takes(3, 1, 0.25).takes(4, 1, 0.25).copies(1)));
  EXPECT_FALSE(clear(Made().takes(0, 1, 0.8).takes(1, 1, 0.8).takes(2, 1, 0.8).takes(3, 1, 0.5).takes(4, 1, 0.5).copies(1)))
      << "a part of it is open";
}

TEST(Looks, SameAndClearTwice_EndTheTrials) {
  Attribution recorded;
  recorded.lock_wait_share = 0.5;
  const Made clear = Made().takes(0, 1, 0.6).treated(1, 0.6).copies(1);
  const Made unclear = Made(0.1, 3).takes(0, 1, 0.6).treated(1, 0.6).copies(1);
  const auto look_at = [&](Looks& looks, const Made& made) {
    const Verdict verdict = made.verdict(&recorded);
    ASSERT_EQ(found(verdict), "own-lock");
    looks.add(made.experiment_, verdict);
  };
  Looks looks;
  EXPECT_FALSE(looks.is_due(1));
  EXPECT_TRUE(looks.is_due(2));
  look_at(looks, clear);
  EXPECT_FALSE(looks.are_settled(2));
  EXPECT_FALSE(looks.is_due(2));
  look_at(looks, clear);
  EXPECT_TRUE(looks.are_settled(3));

  Looks open;
  for (const unsigned rounds : {2U, 3U, 4U}) {
    ASSERT_TRUE(open.is_due(rounds));
    look_at(open, unclear);
    EXPECT_FALSE(open.are_settled(rounds));
  }
  look_at(open, unclear);
  EXPECT_TRUE(open.are_settled(8)) << "the same over many rounds";
  open.add(unclear.experiment_, Made().takes(0, 1, 0.8).treated(1, 0.26).copies(1).verdict());
  EXPECT_FALSE(open.are_settled(16)) << "undecided";
}

}  // namespace
}  // namespace freehold::doctor
