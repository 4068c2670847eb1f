// SPDX-License-Identifier: MIT
#include "freehold/alloc/spans/metadata.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::FakePages;

TEST(Metadata, Allocate_EverySize_IsZeroedAlignedAndApart) {
  FakePages pages;
  Metadata<FakePages> metadata;
  metadata.attach(pages);
  std::map<std::uintptr_t, std::size_t> blocks;
  for (std::size_t bytes = 1; bytes <= 8192; bytes += 13) {
    void* block = metadata.allocate(bytes);
    ASSERT_NE(block, nullptr);
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    EXPECT_EQ(start % 64, 0U);
    EXPECT_TRUE(test::all_zero(block, bytes));
    std::memset(block, 0xff, bytes);
    const auto next = blocks.upper_bound(start);
    EXPECT_TRUE(next == blocks.end() || start + bytes <= next->first);
    EXPECT_TRUE(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= start);
    blocks[start] = bytes;
  }
}

TEST(Metadata, Freed_IsUsedAgainAndZeroed) {
  FakePages pages;
  Metadata<FakePages> metadata;
  metadata.attach(pages);
  std::mt19937 random(1);
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (int step = 0; step < 100'000; ++step) {
    if (random() % 2 == 0 && blocks.size() < 50) {
      const std::size_t bytes = 1 + random() % 8192;
      void* block = metadata.allocate(bytes);
      ASSERT_TRUE(test::all_zero(block, bytes));
      std::memset(block, 0xff, bytes);
      blocks.emplace_back(block, bytes);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      metadata.free(blocks.back().first, blocks.back().second);
      blocks.pop_back();
    }
  }
  EXPECT_LE(metadata.mapped_bytes(), std::size_t{2} << 20) << "50 blocks of at most 8 KiB, eight kinds";
  EXPECT_EQ(metadata.mapped_bytes(), pages.mapped_bytes());
}

TEST(Metadata, NoPages_NullAndLaterAgain) {
  FakePages pages;
  Metadata<FakePages> metadata;
  metadata.attach(pages);
  pages.fail_from_now_on();
  EXPECT_EQ(metadata.allocate(64), nullptr);
  pages.heal();
  void* block = metadata.allocate(64);
  ASSERT_NE(block, nullptr);
  std::size_t more = 0;
  pages.fail_from_now_on();
  while (metadata.allocate(8192) != nullptr) ++more;
  EXPECT_EQ(more, 31U) << "the rest of a chunk of 256 KiB";
  while (metadata.allocate(64) != nullptr) ++more;
  EXPECT_EQ(more, 31U + 127U) << "and of that, every byte";
  pages.heal();
  EXPECT_NE(metadata.allocate(8192), nullptr);
}

}  // namespace
}  // namespace freehold::alloc
