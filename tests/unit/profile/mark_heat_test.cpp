// SPDX-License-Identifier: MIT
#include "freehold/profile/mark_heat.hpp"

#include <gtest/gtest.h>

namespace freehold::profile {
namespace {

const char g_blocks[1'000] = {};

void turns(MarkHeat& heat, unsigned count, std::uint64_t milliseconds) {
  for (unsigned i = 0; i < count; ++i) {
    heat.note_allocated(&g_blocks[0]);
    heat.note_freed(&g_blocks[0], milliseconds);
  }
}

TEST(MarkHeat, LoopAtOnePlace_HotUntilThePeriodEnds) {
  MarkHeat heat;
  turns(heat, MarkHeat::kMostTurns - 1, 1'600);
  EXPECT_FALSE(heat.is_hot(1'600));
  turns(heat, 1, 1'601);
  EXPECT_TRUE(heat.is_hot(1'615));
  EXPECT_FALSE(heat.is_hot(1'616));
}
TEST(MarkHeat, PairWithinAPair_Hot) {
  MarkHeat heat;
  for (unsigned i = 0; i < MarkHeat::kMostTurns; ++i) {
    heat.note_allocated(&g_blocks[0]);
    heat.note_allocated(&g_blocks[1]);
    heat.note_freed(&g_blocks[1], 0);
    heat.note_freed(&g_blocks[0], 0);
  }
  EXPECT_TRUE(heat.is_hot(0));
}
TEST(MarkHeat, EveryTwentiethBlockIsKept_NeverHot) {
  MarkHeat heat;
  for (unsigned i = 1; i < 1'000; ++i) {
    turns(heat, 20, 0);
    heat.note_allocated(&g_blocks[i]);
    ASSERT_FALSE(heat.is_hot(0)) << i;
  }
}
TEST(MarkHeat, OldBlocksFreed_NeverHot) {
  MarkHeat heat;
  for (unsigned i = 0; i < 900; ++i) {
    heat.note_allocated(&g_blocks[i]);
    if (i >= 50) heat.note_freed(&g_blocks[i - 50], 0);
    ASSERT_FALSE(heat.is_hot(0));
  }
}

}  // namespace
}  // namespace freehold::profile
