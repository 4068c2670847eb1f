// SPDX-License-Identifier: MIT
#include "freehold/heap/size_classes.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

TEST(HeapClasses, EverySizeAndAlignment_FitsIsAlignedAndLittleIsWasted) {
  using Classes = HeapClasses<16384>;
  for (std::size_t alignment = 1; alignment <= Classes::kMaxAlignment; alignment *= 2)
    for (std::size_t bytes = 0; bytes <= Classes::kMaxBytes; ++bytes) {
      const unsigned c = Classes::class_of(bytes, alignment);
      ASSERT_LT(c, Classes::kCount);
      const std::size_t slot = Classes::slot_bytes(c);
      ASSERT_GE(slot, bytes);
      ASSERT_EQ(slot % alignment, 0U) << bytes << " at " << alignment;
      // The next smaller class would not do.
      if (c > 0) {
        const std::size_t less = Classes::slot_bytes(c - 1);
        ASSERT_TRUE(less < bytes || less % alignment != 0 || bytes == 0) << bytes << " at " << alignment;
      }
      if (alignment <= 8 && bytes > 0) {
        ASSERT_LE(slot - bytes, std::max<std::size_t>(7, bytes / 8)) << bytes;
      }
    }
}

TEST(HeapClasses, Classes_Ascend) {
  using Classes = HeapClasses<16384>;
  for (unsigned c = 1; c < Classes::kCount; ++c) EXPECT_LT(Classes::slot_bytes(c - 1), Classes::slot_bytes(c));
  EXPECT_EQ(Classes::slot_bytes(0), 8U);
  EXPECT_EQ(Classes::slot_bytes(Classes::kCount - 1), Classes::kMaxBytes);
}

}  // namespace
}  // namespace freehold::heap
