// SPDX-License-Identifier: MIT
// OwnerPagesHeap in checked mode: this program runs with FREEHOLD_CHECK=1. (Each kind of misuse, as a process of its own:
// tests/misuse/thread_alloc_program.cpp.)
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "freehold/base/check.hpp"
#include "freehold/thread_alloc/owner_pages_heap.hpp"

namespace freehold::thread_alloc {
namespace {

using base::HeapError;

std::vector<std::pair<HeapError, const void*>> g_errors;

template <class Policy>
class OwnerPagesChecked : public testing::Test {
 protected:
  using Heap = OwnerPagesHeap<Policy>;

  OwnerPagesChecked()
      : former_(base::set_fatal_handler([](HeapError error, const void* at) { g_errors.emplace_back(error, at); })) {
    g_errors.clear();
  }
  ~OwnerPagesChecked() override { base::set_fatal_handler(former_); }

 private:
  base::FatalHandler former_;
};
using Policies = testing::Types<MutexPages<>, LockFreePages<>, ArticlePages<>>;
TYPED_TEST_SUITE(OwnerPagesChecked, Policies);

TYPED_TEST(OwnerPagesChecked, BlocksBesideEachOther_ComeFromTheEngineWithTheirExactSizes) {
  using Heap = OwnerPagesHeap<TypeParam>;
  for (const std::size_t bytes : {1U, 20U, 128U, 5000U, 200'000U}) {
    auto* const block = static_cast<char*>(Heap::allocate(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(Heap::usable_size(block), bytes);
    std::memset(block, 1, bytes);
    auto* const more = static_cast<char*>(Heap::reallocate(block, bytes + 9));
    EXPECT_EQ(more[bytes - 1], 1);
    Heap::deallocate(more);
  }
  OwnerPagesStats stats{};
  Heap::stats(stats);
  EXPECT_EQ(stats.owners, 0U);
  EXPECT_EQ(stats.pages, 0U);
  EXPECT_TRUE(g_errors.empty());
}

TYPED_TEST(OwnerPagesChecked, FreedTwiceByTwoThreads_DoubleFree) {
  using Heap = OwnerPagesHeap<TypeParam>;
  void* const block = Heap::allocate(20);
  std::thread([=] { Heap::deallocate(block); }).join();
  EXPECT_TRUE(g_errors.empty());
  Heap::deallocate(block);
  ASSERT_EQ(g_errors.size(), 1U);
  EXPECT_EQ(g_errors[0], std::pair(HeapError::kDoubleFree, static_cast<const void*>(block)));
}

TYPED_TEST(OwnerPagesChecked, AByteBehindABlockIsWritten_SeenAtItsFree) {
  using Heap = OwnerPagesHeap<TypeParam>;
  auto* const block = static_cast<volatile unsigned char*>(Heap::allocate(20));
  block[20] = static_cast<unsigned char>(~block[20]);
  Heap::deallocate(const_cast<unsigned char*>(block));
  ASSERT_EQ(g_errors.size(), 1U);
  EXPECT_EQ(g_errors[0].first, HeapError::kWriteBehind);
  block[20] = static_cast<unsigned char>(~block[20]);
  Heap::deallocate(const_cast<unsigned char*>(block));
  EXPECT_EQ(g_errors.size(), 1U);
}

}  // namespace
}  // namespace freehold::thread_alloc
