// SPDX-License-Identifier: MIT
// Misuse of private heaps: found in a checked build, always and at once; use after the end of a block, and beyond it, by
// AddressSanitizer. (memcheck: tests/misuse/heap_memcheck.cpp.)
#include "freehold/base/check.hpp"
#include "freehold/base/poison.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "tests/support/heap_errors.hpp"
#include "tests/support/heaps.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

using base::HeapError;
using test::HeapErrors, test::HeapName;

template <class H>
class Misuse : public testing::Test {
 protected:
  void SetUp() override {
    if (!base::kChecked) GTEST_SKIP() << "only a checked build promises to see it";
  }
  // Exactly this error was seen since the last call, and the heap goes on.
  void expect(HeapError error, const void* at) {
    HeapErrors::expect(error, at);
    const std::uint64_t before = heap_.stats().live_objects;
    void* const block = heap_.allocate(48);
    EXPECT_NE(block, nullptr);
    heap_.deallocate(block);
    EXPECT_EQ(heap_.stats().live_objects, before);
    heap::Inside::check_invariants(heap_);
    HeapErrors::expect_none();
  }
  [[nodiscard]] static std::byte* inside(void* block, std::size_t bytes) { return static_cast<std::byte*>(block) + bytes; }

  HeapErrors errors_;
  H heap_, other_;
};
// For what every build sees.
template <class H>
class MisuseInAnyBuild : public Misuse<H> {
  void SetUp() override {}
};
using Kinds = testing::Types<OwnerLockedHeap, PrivateHeap>;
TYPED_TEST_SUITE(Misuse, Kinds, HeapName);
TYPED_TEST_SUITE(MisuseInAnyBuild, Kinds, HeapName);

TYPED_TEST(MisuseInAnyBuild, TheMiddleOfALargeBlock_InteriorPointerAndTheBlockStays) {
  void* const block = this->heap_.allocate(60'000);
  for (const std::size_t offset : {16U, 1024U, 30'000U}) {
    this->heap_.deallocate(this->inside(block, offset));
    this->expect(HeapError::kInteriorPointer, this->inside(block, offset));
    EXPECT_EQ(this->heap_.stats().large_blocks, 1U);
  }
  this->heap_.deallocate(block);
  EXPECT_EQ(this->heap_.stats().large_blocks, 0U);
  HeapErrors::expect_none();
}

TYPED_TEST(MisuseInAnyBuild, BlockOfAnotherHeap_ForeignPointerAndBothStay) {
  if (base::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer sees it first";
  for (const std::size_t bytes : {48U, 3000U, 60'000U}) {
    void* const block = this->heap_.allocate(bytes);
    void* const warm = this->other_.allocate(bytes);
    this->other_.deallocate(block);
    this->expect(HeapError::kForeignPointer, block);
    EXPECT_EQ(this->other_.usable_size(block), 0U);
    this->expect(HeapError::kForeignPointer, block);
    EXPECT_GE(this->heap_.usable_size(block), bytes);
    this->heap_.deallocate(block);
    this->other_.deallocate(warm);
    HeapErrors::expect_none();
  }
}

TYPED_TEST(Misuse, AlignmentThatIsNoPowerOfTwo_Asserted) {
  EXPECT_DEATH(static_cast<void>(this->heap_.allocate(100, 24)), "has_single_bit");
  EXPECT_DEATH(static_cast<void>(this->heap_.allocate(100'000, 4095)), "has_single_bit");
}

// ---- AddressSanitizer ----

char* another(void* pointer) {
  asm volatile("" : "+r"(pointer));  // compilers see through what is done to memory of operator new
  return static_cast<char*>(pointer);
}

template <class H>
class Watched : public testing::Test {
 protected:
  void SetUp() override {
    if (!base::kAddressSanitizer) GTEST_SKIP() << "without AddressSanitizer";
  }
  H heap_;
};
TYPED_TEST_SUITE(Watched, Kinds, HeapName);

constexpr const char* kUsedLate = "AddressSanitizer: (use-after-poison|heap-use-after-free)";
constexpr const char* kBeyond = "AddressSanitizer: (use-after-poison|heap-buffer-overflow)";

TYPED_TEST(Watched, UseAfterFree_Reported) {
  for (const std::size_t bytes : {16U, 40U, 1000U, 60'000U}) {
    char* const kept = another(this->heap_.allocate(bytes));
    char* const block = another(this->heap_.allocate(bytes));
    kept[0] = block[0] = block[bytes - 1] = 1;
    this->heap_.deallocate(block);
    EXPECT_DEATH(another(block)[0] = 2, kUsedLate) << bytes;
    EXPECT_DEATH(another(block)[bytes - 1] = 2, kUsedLate) << bytes;
    kept[bytes - 1] = 1;
    this->heap_.deallocate(kept);
  }
}

TYPED_TEST(Watched, OverrunBesideNeighboursInUse_Reported) {
  for (const std::size_t bytes : {1U, 16U, 48U, 1024U, 60'000U}) {
    std::vector<char*> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(another(this->heap_.allocate(bytes)));
    char* const block = blocks[25];
    const std::size_t usable = this->heap_.usable_size(block);
    block[usable - 1] = 1;
    EXPECT_DEATH(another(block)[usable] = 1, kBeyond) << bytes;
    for (char* each : blocks) this->heap_.deallocate(each);
  }
}

}  // namespace
}  // namespace freehold::heap
