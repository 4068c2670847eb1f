// SPDX-License-Identifier: MIT
// Blocks that are mapped one by one while a fork is under way. Threads that meet are tests/model/fork_gate_model.cpp's.
#include "freehold/alloc/process/fork_work.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using Blocks = ForkBlocks<sync::NativeAtomics, test::FakePages>;

TEST(ForkBlocks, ManyBlocks_EachIsFoundAndFreedInAnyOrder) {
  test::FakePages pages;
  Blocks blocks;
  constexpr std::size_t kBlocks = 1000;  // more than there are lists
  std::vector<char*> held;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::size_t alignment = std::size_t{1} << i % 13, bytes = i * 7 % 5000;
    auto* const block = static_cast<char*>(blocks.allocate(pages, bytes, alignment));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    EXPECT_GE(blocks.bytes_of(block), bytes);
    std::memset(block, 1, bytes);
    held.push_back(block);
  }
  for (char* block : held) {
    EXPECT_EQ(blocks.bytes_of(block + 1), 0U) << "the middle of one is none";
    EXPECT_FALSE(blocks.free(pages, block + 1));
  }
  for (std::size_t i = 0; i < kBlocks; ++i) {  // neither as a stack nor as a queue
    char* const block = held[i * 7 % kBlocks];
    EXPECT_TRUE(blocks.free(pages, block)) << i;
    EXPECT_FALSE(blocks.free(pages, block)) << i;
  }
  EXPECT_EQ(pages.mapped_bytes(), 0U);
}

TEST(ForkBlocks, TooLargeOrRefused_NullAndNothingIsMapped) {
  test::FakePages pages;
  Blocks blocks;
  constexpr std::size_t kMost = PTRDIFF_MAX;
  EXPECT_EQ(blocks.allocate(pages, ~std::size_t{0}, 16), nullptr);
  EXPECT_EQ(blocks.allocate(pages, kMost, 16), nullptr);
  EXPECT_EQ(blocks.allocate(pages, 1, std::size_t{1} << 63), nullptr);
  pages.fail_from_now_on();
  EXPECT_EQ(blocks.allocate(pages, 100, 16), nullptr);
  EXPECT_EQ(pages.mapped_bytes(), 0U);
}

}  // namespace
}  // namespace freehold::alloc
