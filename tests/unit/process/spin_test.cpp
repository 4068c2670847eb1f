// SPDX-License-Identifier: MIT
// How often a worker looks before it sleeps: longer where looking has helped, shorter where it has not.
#include "freehold/process/spin.hpp"

#include <gtest/gtest.h>

namespace freehold::process {
namespace {

// How often it looks in vain.
unsigned looks(AdaptiveSpin& spin) {
  unsigned count = 0;
  EXPECT_FALSE(spin.until([&] { return ++count == 0; }));
  return count;
}

TEST(AdaptiveSpin_Unit, InVain_LooksEverLessButNeverNotAtAll) {
  AdaptiveSpin spin;
  unsigned last = looks(spin);
  EXPECT_GT(last, 100U);
  for (int i = 0; i < 100; ++i) {
    const unsigned now = looks(spin);
    EXPECT_LE(now, last);
    last = now;
  }
  EXPECT_GE(last, 8U);
  EXPECT_LE(last, 16U);
}

TEST(AdaptiveSpin_Unit, Found_TrueAtOnceAndLooksLongerNextTime) {
  AdaptiveSpin spin, other;
  for (int i = 0; i < 100; ++i) {
    unsigned count = 0;
    EXPECT_TRUE(spin.until([&] { return ++count == 3; }));
    EXPECT_EQ(count, 3U);
  }
  const unsigned most = looks(spin);
  EXPECT_GT(most, 2 * looks(other));
  EXPECT_LE(most, 1000U);
}

}  // namespace
}  // namespace freehold::process
