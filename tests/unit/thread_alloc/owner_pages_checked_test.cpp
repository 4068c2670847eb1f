// SPDX-License-Identifier: MIT
// OwnerPagesHeap in checked mode: this program runs with FREEHOLD_CHECK=1. (Each kind of misuse, as a process of its own:
// tests/misuse/thread_alloc_program.cpp.)
#include "freehold/thread_alloc/owner_pages_heap.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/test.hpp"

namespace freehold::thread_alloc {
namespace {

using base::HeapError;
using freehold::test::HeapErrors;

template <class Policy>
class OwnerPagesChecked : public testing::Test {
 protected:
  freehold::test::HeapErrors errors_;
};
using Policies = testing::Types<MutexPages<>, LockFreePages<>>;
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
  HeapErrors::expect_none();
}

TYPED_TEST(OwnerPagesChecked, FreedTwiceByTwoThreads_DoubleFree) {
  using Heap = OwnerPagesHeap<TypeParam>;
  void* const block = Heap::allocate(20);
  std::thread([=] { Heap::deallocate(block); }).join();
  HeapErrors::expect_none();
  Heap::deallocate(block);
  HeapErrors::expect(HeapError::kDoubleFree, block);
}

TYPED_TEST(OwnerPagesChecked, AByteBehindABlockIsWritten_SeenAtItsFree) {
  using Heap = OwnerPagesHeap<TypeParam>;
  auto* const block = static_cast<volatile unsigned char*>(Heap::allocate(20));
  block[20] = static_cast<unsigned char>(~block[20]);
  Heap::deallocate(const_cast<unsigned char*>(block));
  HeapErrors::expect(HeapError::kWriteBehind, const_cast<unsigned char*>(block));
  block[20] = static_cast<unsigned char>(~block[20]);
  Heap::deallocate(const_cast<unsigned char*>(block));
  HeapErrors::expect_none();
}

}  // namespace
}  // namespace freehold::thread_alloc
