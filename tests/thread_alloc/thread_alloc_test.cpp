// SPDX-License-Identifier: MIT
// thread_alloc from C++, linked with one of its backends, which FREEHOLD_TEST_BACKEND names. Every block carries a different
// pattern, checked before it is freed: a block given twice, or moved wrongly, does not read back.
#include "freehold/thread_alloc.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "freehold/thread_alloc/owner_pages_heap.hpp"
#include "tests/support/pattern.hpp"

namespace {

using freehold::test::fill;
using freehold::test::intact;
using namespace freehold::thread_alloc;

constexpr std::string_view kBackend = FREEHOLD_TEST_BACKEND;
constexpr bool kOwnerPages = kBackend != "engine";
// The instance behind the library, if that is the one linked.
using Heap = std::conditional_t<kBackend == "article", OwnerPagesHeap<ArticlePages<SystemUpstream>>, OwnerPagesHeap<>>;

OwnerPagesStats heap_stats() {
  OwnerPagesStats stats;
  Heap::stats(stats);
  return stats;
}

struct Block {
  void* at;
  std::size_t bytes;
  std::uint64_t stamp;
};

Block make(std::size_t bytes, std::uint64_t stamp) {
  void* const at = thread_alloc(bytes);
  EXPECT_NE(at, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 16, 0u);
  fill(at, bytes, stamp);
  return {at, bytes, stamp};
}

void check_and_free(const Block& block) {
  EXPECT_TRUE(intact(block.at, block.bytes, block.stamp)) << block.bytes << " bytes";
  thread_free(block.at);
}

std::vector<Block> make_many(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(make(random() % (i % 16 == 0 ? 3000 : 160), random()));
  return blocks;
}

TEST(ThreadAlloc, Linked_OneOfTheBackends_IsTheOneAskedFor) {
  const auto before = heap_stats();
  const auto blocks = make_many(1000, 1);
  const auto after = heap_stats();
  if (kOwnerPages)
    EXPECT_GT(after.pages, before.pages);
  else
    EXPECT_EQ(after.descriptors, 0u);
  for (const Block& block : blocks) check_and_free(block);
}

// Blocks of up to 64 sizes are live at the same time.
TEST(ThreadAlloc, Alloc_EverySizeTo200000_AlignedAndDisjoint) {
  std::vector<Block> live(64, Block{nullptr, 0, 0});
  std::size_t turn = 0;
  for (std::size_t bytes = 0; bytes <= 200'000; bytes += bytes < 2100 ? 1 : 97) {
    Block& place = live[turn++ % live.size()];
    if (place.at != nullptr) check_and_free(place);
    place = make(bytes, bytes * 77 + 1);
  }
  for (const Block& block : live) check_and_free(block);
}

TEST(ThreadAlloc, Alloc_ZeroBytes_DistinctBlocks) {
  void* const a = thread_alloc(0);
  void* const b = thread_alloc(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
  EXPECT_NE(a, b);
  thread_free(a);
  thread_free(b);
  thread_free(nullptr);
}

TEST(ThreadAlloc, AllocAligned_EveryAlignmentAndSize_AlignedAndFreed) {
  for (std::size_t alignment = 1; alignment <= std::size_t{4} << 20; alignment *= 2)
    for (const std::size_t bytes : {0, 1, 17, 100, 128, 129, 5000, 100'000}) {
      std::vector<Block> blocks;
      for (std::uint64_t i = 0; i < 3; ++i) {
        void* const at = thread_alloc_aligned(alignment, bytes);
        ASSERT_NE(at, nullptr) << alignment << ' ' << bytes;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
        fill(at, bytes, i);
        blocks.push_back({at, bytes, i});
      }
      for (const Block& block : blocks) check_and_free(block);
    }
}

TEST(ThreadAlloc, Realloc_RandomSizes_KeepsContents) {
  std::mt19937_64 random(5);
  std::vector<Block> blocks(20, Block{nullptr, 0, 0});
  for (int step = 0; step < 3000; ++step) {
    Block& block = blocks[random() % blocks.size()];
    const std::size_t bytes = random() % (random() % 4 == 0 ? 200'001 : 200);
    void* const moved = thread_realloc(block.at, bytes);
    ASSERT_NE(moved, nullptr);
    ASSERT_TRUE(intact(moved, bytes, block.bytes, block.stamp)) << block.bytes << " to " << bytes;
    block = {moved, bytes, random()};
    fill(moved, bytes, block.stamp);
  }
  for (const Block& block : blocks) check_and_free(block);
}

TEST(ThreadAlloc, Realloc_AlignedBlock_KeepsContents) {
  void* const at = thread_alloc_aligned(512, 40);
  fill(at, 40, 3);
  void* const moved = thread_realloc(at, 9000);
  ASSERT_NE(moved, nullptr);
  EXPECT_TRUE(intact(moved, 40, 3));
  thread_free(moved);
}

TEST(ThreadAlloc, AnyCall_AbsurdSize_EnomemAndBlockUntouched) {
  const Block block = make(100, 9);
  for (const std::size_t absurd : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096, SIZE_MAX / 2, std::size_t{1} << 60}) {
    const auto fails = [&](auto call) {
      errno = 0;
      void* const result = call(absurd);
      EXPECT_EQ(result, nullptr) << absurd;
      EXPECT_EQ(errno, ENOMEM) << absurd;
    };
    fails([](std::size_t n) { return thread_alloc(n); });
    fails([](std::size_t n) { return thread_alloc_aligned(64, n); });
    fails([](std::size_t n) { return thread_alloc_aligned(8192, n); });
    fails([&](std::size_t n) { return thread_realloc(block.at, n); });
  }
  check_and_free(block);
}

TEST(ThreadAlloc, Free_OwnerHasExited_ContentsKeptThenPagesReturned) {
  const auto before = heap_stats();
  std::vector<std::vector<Block>> left(20);
  for (std::size_t t = 0; t < left.size(); ++t) std::thread([&, t] { left[t] = make_many(1000, t); }).join();
  EXPECT_EQ(heap_stats().pages_left > before.pages_left, kOwnerPages);

  const auto free_every_second = [&](std::size_t first) {
    for (auto& blocks : left)
      for (std::size_t i = first; i < blocks.size(); i += 2) check_and_free(blocks[i]);
  };
  std::thread even(free_every_second, 0), odd(free_every_second, 1);
  even.join();  // a thread that exits hands over what it has gathered
  odd.join();
  EXPECT_EQ(heap_stats().pages_left, before.pages_left);
}

}  // namespace
