// SPDX-License-Identifier: MIT
#include "freehold/alloc/size_classes.hpp"
#include "freehold/alloc/observe/stats.hpp"
#include "tests/support/test.hpp"

namespace freehold::alloc {
namespace {

using C = SizeClasses;

TEST(SizeClasses, ClassOf_EverySize_IsTheSmallestThatHoldsIt) {
  for (std::size_t bytes = 1; bytes <= C::kMaxBytes; ++bytes) {
    const SizeClass c = C::class_of(bytes);
    ASSERT_TRUE(c.is_slot());
    ASSERT_LT(c.index(), C::kCount);
    ASSERT_GE(C::slot_bytes(c), bytes);
    ASSERT_TRUE(c == SizeClass{1} || C::slot_bytes(SizeClass{c.index() - 1}) < bytes) << bytes;
  }
}

// The promise: at most 12.5% of a request above 128 bytes is added, 15 bytes below.
TEST(SizeClasses, Waste_EverySize_WithinThePromise) {
  for (std::size_t bytes = 1; bytes <= C::kMaxBytes; ++bytes) {
    const std::size_t added = C::slot_bytes(C::class_of(bytes)) - bytes;
    ASSERT_TRUE(bytes > 128 ? added * 8 <= bytes : added <= 15) << bytes << " gets " << added << " more";
  }
}

TEST(SizeClasses, AlignedClassOf_EveryPair_SlotsHoldAndAreAligned) {
  for (std::size_t alignment = 1; alignment <= C::kMaxBytes; alignment *= 2)
    for (std::size_t bytes = 1; bytes <= C::kMaxBytes; bytes += bytes < 300 ? 1 : 37) {
      const SizeClass c = C::aligned_class_of(alignment, bytes);
      ASSERT_TRUE(c.is_slot()) << alignment << ", " << bytes;
      ASSERT_GE(C::slot_bytes(c), bytes);
      ASSERT_EQ(C::slot_bytes(c) % alignment, 0U);
      for (SizeClass smaller{1}; smaller < c; ++smaller)
        ASSERT_FALSE(C::slot_bytes(smaller) >= bytes && C::slot_bytes(smaller) % alignment == 0) << "a smaller one would do";
    }
}

TEST(SizeClasses, AlignedClassOf_TooLarge_None) {
  EXPECT_EQ(C::aligned_class_of(16, C::kMaxBytes + 1), SizeClass{});
  EXPECT_EQ(C::aligned_class_of(C::kMaxBytes, C::kMaxBytes + 1), SizeClass{});
}

// Golden: a change of the table is a decision, with figures.
TEST(SizeClasses, Table_Golden) {
  const std::size_t around_1k[] = {896, 960, 1024, 1152, 1280};
  for (std::size_t i = 0; i < std::size(around_1k); ++i)
    EXPECT_EQ(C::slot_bytes(SizeClass{C::class_of(896).index() + static_cast<unsigned>(i)}), around_1k[i]);
  EXPECT_EQ(C::class_of(1), SizeClass{1});
  EXPECT_EQ(C::class_of(17), SizeClass{2});
  EXPECT_EQ(C::class_of(128), SizeClass{8});
  EXPECT_EQ(C::class_of(129), SizeClass{9});
  EXPECT_EQ(C::slot_bytes(SizeClass{9}), 144U);
  EXPECT_EQ(C::kCount, 73U);
}

static_assert(C::kCount - 1 <= kMaxStatsClasses);

}  // namespace
}  // namespace freehold::alloc
