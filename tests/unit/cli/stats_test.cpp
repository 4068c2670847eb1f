// SPDX-License-Identifier: MIT
#include "tests/support/test.hpp"
#include "tools/support/units.hpp"

namespace freehold::cli {
namespace {

TEST(BytesText, ThreeDigitsAtMost) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(98 << 10), "98 KiB");
  EXPECT_EQ(bytes_text(1023 << 10), "1.0 MiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16384 PiB");
}

}  // namespace
}  // namespace freehold::cli
