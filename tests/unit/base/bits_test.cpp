// SPDX-License-Identifier: MIT
#include "freehold/base/bits.hpp"

#include <gtest/gtest.h>

namespace freehold::base {
namespace {

TEST(Bits, LowBits_EveryCount_SetsThatManyFromTheBottom) {
  std::uint64_t expected = 0;
  for (unsigned n = 0; n <= 64; ++n) {
    EXPECT_EQ(low_bits(n), expected) << n;
    if (n < 64) expected |= bit(n);
  }
}

TEST(Bits, LowestBit_EveryPosition_IgnoresHigherBits) {
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(lowest_bit(bit(i)), i);
    EXPECT_EQ(lowest_bit(~std::uint64_t{0} << i), i);
  }
}

TEST(Bits, Align_AgreesWithDivision) {
  for (const std::size_t alignment : {1, 2, 16, 64, 4096})
    for (std::size_t n = 0; n < 3 * alignment + 3; ++n) {
      EXPECT_EQ(align_up(n, alignment), (n + alignment - 1) / alignment * alignment);
      EXPECT_EQ(align_down(n, alignment), n / alignment * alignment);
      EXPECT_EQ(is_aligned(n, alignment), n % alignment == 0);
    }
}

TEST(Bits, CeilDiv_RoundsUp) {
  EXPECT_EQ(ceil_div(0, 64), 0U);
  EXPECT_EQ(ceil_div(1, 64), 1U);
  EXPECT_EQ(ceil_div(64, 64), 1U);
  EXPECT_EQ(ceil_div(65, 64), 2U);
}

static_assert(low_bits(64) == ~std::uint64_t{0} && align_up(17, 16) == 32);  // constexpr

}  // namespace
}  // namespace freehold::base
