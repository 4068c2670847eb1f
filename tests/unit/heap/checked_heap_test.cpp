// SPDX-License-Identifier: MIT
// Private heaps in checked mode: this program runs with FREEHOLD_CHECK=1. (Each kind of misuse, in a separate process:
// tests/misuse/heap_program.cpp.)
#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/base/check.hpp"
#include "freehold/check/settings.hpp"
#include "freehold/heap/block_owners.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "tests/support/child.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/heaps.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

using base::HeapError;
using test::HeapErrors, test::HeapName;

void overwrite(void* at) {
  auto* const byte = static_cast<volatile unsigned char*>(at);
  *byte = static_cast<unsigned char>(*byte ^ 0x40);
}

template <class H>
class CheckedHeaps : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(check::settings().on) << "the environment must have FREEHOLD_CHECK=1";
    if (base::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer looks at the blocks instead";
  }
  // Exactly this error was seen since the last call, and the heap goes on.
  void expect(HeapError error, const void* at) {
    HeapErrors::expect(error, at);
    heap_.deallocate(heap_.allocate(48));
    heap::Inside::check_invariants(heap_);
    HeapErrors::expect_none();
  }
  [[nodiscard]] char* block_of(std::size_t bytes) { return static_cast<char*>(heap_.allocate(bytes)); }

  HeapErrors errors_;
  H heap_, other_;
};
using Kinds = testing::Types<OwnerLockedHeap, PrivateHeap>;
TYPED_TEST_SUITE(CheckedHeaps, Kinds, HeapName);

TYPED_TEST(CheckedHeaps, OneByteBesideABlockIsWritten_SeenAtItsFreeAndOnDemand) {
  for (const std::size_t bytes : {1U, 100U, 16'000U, 200'000U}) {
    char* const block = this->block_of(bytes);
    overwrite(block + bytes);
    EXPECT_EQ(alloc::check_all(), 1U);
    this->expect(HeapError::kWriteBehind, block);
    this->heap_.deallocate(block);
    this->expect(HeapError::kWriteBehind, block);
    overwrite(block + bytes);
    overwrite(block - 1);
    this->heap_.deallocate(block, bytes);
    this->expect(HeapError::kWriteBefore, block);
    overwrite(block - 1);
    this->heap_.deallocate(block);
    HeapErrors::expect_none();
  }
}

TYPED_TEST(CheckedHeaps, CorrectUse_NothingIsSaidAndTheFiguresFit) {
  std::vector<std::pair<char*, std::size_t>> blocks;
  std::size_t bytes = 0;
  for (std::size_t n = 1; n < 40'000; n = n * 3 / 2 + 1) {
    blocks.emplace_back(this->block_of(n), n);
    std::memset(blocks.back().first, 7, n);
    bytes += n;
    EXPECT_EQ(this->heap_.usable_size(blocks.back().first), n);
  }
  EXPECT_EQ(this->heap_.stats().live_objects, blocks.size());
  EXPECT_EQ(this->heap_.stats().live_bytes, bytes);
  EXPECT_EQ(this->heap_.stats().used_bytes, bytes);
  for (auto& [block, n] : blocks) {
    EXPECT_EQ(&TypeParam::heap_of(block), &this->heap_);
    block = static_cast<char*>(this->heap_.reallocate(block, n + 100));
    ASSERT_NE(block, nullptr);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(block[i], 7);
    this->heap_.deallocate(block, n + 100);
  }
  EXPECT_EQ(this->heap_.stats().used_bytes, 0U);
  heap::Inside::check_invariants(this->heap_);
  HeapErrors::expect_none();
}

TYPED_TEST(CheckedHeaps, ALimit_CountsTheBytesThatWereAskedFor) {
  TypeParam heap({.limit_bytes = 1000});
  void* const block = heap.allocate(1000);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(heap.allocate(1), nullptr);
  EXPECT_FALSE(heap.reserve(1));
  heap.deallocate(block);
  EXPECT_TRUE(heap.reserve(1000));
  EXPECT_NE(heap.allocate(999), nullptr);
  HeapErrors::expect_none();
}

class CheckedPrivateHeap : public CheckedHeaps<PrivateHeap> {};

TEST_F(CheckedPrivateHeap, ChildOfForkAmidOtherThreads_UsesTheHeap) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) heap_.deallocate(heap_.allocate(64));
  });
  for (int i = 0; i < 20; ++i) {
    const auto use_heap = [&] {
      heap_.deallocate(heap_.allocate(64));
      return HeapErrors::seen.empty() ? 0 : 1;
    };
    EXPECT_EQ(test::run_in_child(use_heap), 0);
  }
  stop = true;
  busy.join();
}

TEST(OwnedBlocks, ManyBlocksOfTwoHeaps_EachKnowsItsOwn) {
  int heaps[2];
  OwnedBlocks first(&heaps[0]), second(&heaps[1]);
  constexpr std::size_t kBlocks = 20'000;  // the table grows several times
  std::vector<char> places(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) ASSERT_TRUE((i % 3 == 0 ? first : second).add(&places[i], i + 1));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(OwnedBlocks::heap_of(&places[i]), &heaps[i % 3 == 0 ? 0 : 1]);
    EXPECT_EQ((i % 3 == 0 ? second : first).remove(&places[i]), 0U);
  }
  for (std::size_t i = 0; i < kBlocks; i += 6) EXPECT_EQ(first.remove(&places[i]), i + 1);
  for (std::size_t i = 0; i < kBlocks; ++i) EXPECT_EQ(first.has(&places[i]), i % 3 == 0 && i % 6 != 0);
  std::size_t left = first.count(), removed = 0;
  while (first.remove_any() != nullptr) ++removed;
  EXPECT_EQ(removed, left);
  EXPECT_EQ(first.bytes(), 0U);
  EXPECT_EQ(OwnedBlocks::heap_of(&places[3]), nullptr);
  while (second.remove_any() != nullptr) {
  }
  EXPECT_EQ(second.count(), 0U);
}

}  // namespace
}  // namespace freehold::heap
