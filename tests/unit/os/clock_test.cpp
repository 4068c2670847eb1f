// SPDX-License-Identifier: MIT
#include "freehold/os/clock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace freehold::os {
namespace {

TEST(CoarseMilliseconds, AfterTwentyMilliseconds_HasAdvanced) {
  const std::uint64_t before = coarse_milliseconds();
  ::usleep(20'000);
  const std::uint64_t after = coarse_milliseconds();
  EXPECT_GE(after - before, 12U);  // 20, less two reads that may be 4 ms old
  EXPECT_LT(after - before, 10'000U);
}

}  // namespace
}  // namespace freehold::os
