// SPDX-License-Identifier: MIT
// The promises of every private heap, be it locked by its owner or by itself.
#include "tests/support/heaps.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/pattern.hpp"
#include "tests/support/test.hpp"

namespace freehold::test {
namespace {

using heap::HeapOptions;
using heap::HeapStats;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kRedZone = base::kAddressSanitizer ? 16 : 0;  // red zone of every slot

struct Block {
  void* at = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 16;
  std::uint64_t stamp = 0;
};

// Every test ends with its heap: then everything must be back at the source.
template <class H>
class Heaps : public testing::Test {
 protected:
  ~Heaps() override {
    EXPECT_EQ(ledger_.takes(), ledger_.gives()) << "slabs or large blocks were lost";
    EXPECT_EQ(ledger_.strays(), 0U);
  }
  // The caller's heap.
  [[nodiscard]] LedgerSlabs source() { return {&ledger_}; }

  static Block make(H& heap, std::size_t bytes, std::size_t alignment = 16) {
    static std::uint64_t stamp = 0;
    Block block{heap.allocate(bytes, alignment), bytes, alignment, ++stamp};
    if (block.at == nullptr) return block;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.at) % alignment, 0U) << bytes << " at " << alignment;
    fill(block.at, bytes, block.stamp);
    return block;
  }
  static void check(const Block& block) {
    ASSERT_TRUE(intact(block.at, block.bytes, block.stamp)) << block.bytes << " at " << block.alignment;
  }
  // Gives back with and without the size in turns.
  static void end(H& heap, const Block& block) {
    if (block.at == nullptr) return;
    check(block);
    if (block.stamp % 2 == 0)
      heap.deallocate(block.at);
    else
      heap.deallocate(block.at, block.bytes, block.alignment);
  }
  static void end(H& heap, std::vector<Block>& blocks) {
    for (const Block& block : blocks) end(heap, block);
    blocks.clear();
  }
  // As many as the heap gives, up to `limit`.
  static std::vector<Block> make_all(H& heap, std::size_t bytes, std::size_t limit = 1'000'000) {
    std::vector<Block> blocks;
    while (blocks.size() < limit) {
      blocks.push_back(make(heap, bytes));
      if (blocks.back().at != nullptr) continue;
      blocks.pop_back();
      break;
    }
    return blocks;
  }
  static void expect_empty(H& heap) {
    heap::Inside::check_invariants(heap);
    const HeapStats stats = heap.stats();
    EXPECT_EQ(stats.live_objects, 0U);
    EXPECT_EQ(stats.live_bytes, 0U);
    EXPECT_EQ(stats.large_blocks, 0U);
  }

  Ledger ledger_;
};
using Kinds = testing::Types<LedgerOwnerLockedHeap, LedgerPrivateHeap>;
TYPED_TEST_SUITE(Heaps, Kinds, HeapName);

TYPED_TEST(Heaps, EverySizeAndAlignment_AlignedDistinctIntact) {
  TypeParam heap({}, this->source());
  for (std::size_t alignment = 1; alignment <= kMiB; alignment *= 2) {
    std::vector<Block> blocks;
    for (std::size_t bytes = 0; bytes <= 100 * kKiB; bytes += alignment <= 256 && bytes < 300 ? 1 : bytes / 6 + 1) {
      blocks.push_back(this->make(heap, bytes, alignment));
      ASSERT_NE(blocks.back().at, nullptr) << bytes << " at " << alignment;
      ASSERT_GE(heap.usable_size(blocks.back().at), bytes);
      ASSERT_EQ(&TypeParam::heap_of(blocks.back().at), &heap);
    }
    heap::Inside::check_invariants(heap);
    this->end(heap, blocks);
  }
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, BlockOfNoBytes_GrowsAndEndsOnce) {
  TypeParam heap({}, this->source());
  for (const std::size_t alignment : {1, 8, 16, 64}) {
    void* const block = heap.allocate(0, alignment);
    EXPECT_GE(heap.usable_size(block), 1U);
    Block grown{heap.reallocate(block, 100), 100};
    ASSERT_NE(grown.at, nullptr);
    fill(grown.at, grown.bytes, grown.stamp);
    this->end(heap, grown);
    heap.deallocate(heap.allocate(0, alignment), 0, alignment);
  }
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, UsableSize_AllOfItIsTheBlocks) {
  TypeParam heap({}, this->source());
  std::vector<Block> blocks;
  for (std::size_t bytes = 0; bytes < 20'000; bytes += bytes / 9 + 1)
    for (int twice = 0; twice < 2; ++twice) {
      Block block = this->make(heap, bytes);
      block.bytes = heap.usable_size(block.at);
      EXPECT_LE(block.bytes, bytes + bytes / 7 + 16 + kRedZone);
      fill(block.at, block.bytes, block.stamp);
      block.stamp &= ~std::uint64_t{1};  // the size is not the one that was asked for
      fill(block.at, block.bytes, block.stamp);
      blocks.push_back(block);
    }
  this->end(heap, blocks);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, RandomChurn_ContentsStay) {
  TypeParam heap({}, this->source());
  Random random(7);
  std::vector<Block> blocks(600);
  std::size_t live = 0;
  for (int step = 0; step < 60'000; ++step) {
    Block& block = blocks[random.below(blocks.size())];
    if (block.at != nullptr) {
      this->end(heap, block);
      block = {};
      --live;
      continue;
    }
    static constexpr std::size_t kMost[] = {64, 64, 200, 200, 2000, 20'000, 70'000};
    block = this->make(heap, random.below(kMost[random.below(7)]),
                       std::size_t{1} << random.below(random.below(8) == 0 ? 14 : 6));
    ASSERT_NE(block.at, nullptr);
    ++live;
    if (step % 5000 == 0) heap::Inside::check_invariants(heap);
    if (step % 9000 == 0) heap.trim();
  }
  EXPECT_EQ(heap.stats().live_objects, live);
  this->end(heap, blocks);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, Reallocate_ContentsAsFarAsTheyFit) {
  TypeParam heap({}, this->source());
  Random random(11);
  Block block{heap.reallocate(nullptr, 10), 10, 16, 1};
  ASSERT_NE(block.at, nullptr);
  fill(block.at, block.bytes, block.stamp);
  for (std::uint64_t stamp = 2; stamp < 2000; ++stamp) {
    const std::size_t bytes = random.below(stamp % 10 == 0 ? 200'000 : 3000);
    block.at = heap.reallocate(block.at, bytes);
    ASSERT_NE(block.at, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block.at) % 16, 0U);
    ASSERT_TRUE(intact(block.at, std::min(bytes, block.bytes), block.bytes, block.stamp)) << block.bytes << " to " << bytes;
    ASSERT_GE(heap.usable_size(block.at), bytes);
    block.bytes = bytes;
    fill(block.at, bytes, block.stamp = stamp);
  }
  EXPECT_EQ(heap.stats().live_objects, 1U);
  heap.deallocate(block.at);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, ReallocateWithoutMemory_BlockUntouched) {
  TypeParam heap({.limit_bytes = 256 * kKiB}, this->source());
  const Block block = this->make(heap, 1000);
  EXPECT_EQ(heap.reallocate(block.at, kMiB), nullptr);
  EXPECT_EQ(heap.reallocate(block.at, ~std::size_t{0}), nullptr);
  this->end(heap, block);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, AbsurdSizes_NullAndNothingHappened) {
  TypeParam heap({}, this->source());
  const Block block = this->make(heap, 100);
  constexpr std::size_t kMost = ~std::size_t{0};
  for (const std::size_t bytes :
       {kMost, kMost - 15, kMost - 255, kMost - 4095, kMost / 2 + 1, kMost / 2, kMost / 2 - 70'000})
    for (const unsigned shift : {0U, 4U, 8U, 12U, 20U, 31U}) {
      volatile std::size_t absurd = bytes;
      EXPECT_EQ(heap.allocate(absurd, std::size_t{1} << shift), nullptr) << bytes << " at 1 << " << shift;
    }
  for (const unsigned shift : {32U, 40U, 62U, 63U})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, 20 * kKiB, kMost})
      EXPECT_EQ(heap.allocate(bytes, std::size_t{1} << shift), nullptr) << bytes << " at 1 << " << shift;
  EXPECT_EQ(heap.stats().live_objects, 1U);
  this->end(heap, block);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, ReleaseAll_EverythingEndsAndTheHeapGoesOn) {
  TypeParam heap({}, this->source());
  std::size_t held = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 20'000; ++i) blocks.push_back(this->make(heap, i * 13 % 300));
    for (std::size_t i = 0; i < 10; ++i) blocks.push_back(this->make(heap, 20 * kKiB * i, 16 << i));
    for (const Block& block : blocks) this->check(block);
    // Some free ones: those, too, must be forgotten.
    for (std::size_t i = 0; i < blocks.size(); i += 3) this->end(heap, blocks[i]);
    const std::size_t gives = this->ledger_.gives();
    const HeapStats before = heap.stats();
    heap.release_all();
    this->expect_empty(heap);
    EXPECT_LE(this->ledger_.gives() - gives, before.slabs + before.large_blocks) << "more than a call for each slab";
    if (round == 0) held = heap.stats().held_bytes;
    EXPECT_EQ(heap.stats().held_bytes, held) << "grows with every round";
    EXPECT_LE(held, 2 * kSlabBytes);
    EXPECT_EQ(heap.stats().used_bytes, 0U);
    EXPECT_EQ(this->ledger_.bytes(), held);
  }
}

TYPED_TEST(Heaps, Trim_GivesWhollyFreeSlabsBack) {
  TypeParam heap({}, this->source());
  std::vector<Block> blocks = this->make_all(heap, 100, 40'000);
  std::vector<Block> kept(blocks.begin(), blocks.begin() + 20'000);
  blocks.erase(blocks.begin(), blocks.begin() + 20'000);
  this->end(heap, blocks);
  const std::size_t before = this->ledger_.bytes();
  const std::size_t trimmed = heap.trim();
  EXPECT_EQ(before - this->ledger_.bytes(), trimmed);
  EXPECT_EQ(heap.stats().held_bytes, this->ledger_.bytes());
  EXPECT_LE(this->ledger_.bytes(), 20'000U * (112 + kRedZone) * 10 / 9 + 3 * kSlabBytes);
  heap::Inside::check_invariants(heap);
  for (const Block& block : kept) this->check(block);
  this->end(heap, kept);
  EXPECT_GT(heap.trim(), 20'000U * 100 * 9 / 10);
  EXPECT_LE(this->ledger_.bytes(), 2 * kSlabBytes);
  EXPECT_EQ(heap.trim(), 0U) << "nothing is left to give back";
  this->expect_empty(heap);
  kept = this->make_all(heap, 100, 1000);
  EXPECT_EQ(kept.size(), 1000U);
  this->end(heap, kept);
}

TYPED_TEST(Heaps, Reserve_NoTakesUntilItIsUsedUp) {
  TypeParam heap({}, this->source());
  ASSERT_TRUE(heap.reserve(kMiB));
  const Block first = this->make(heap, 64);
  const std::size_t asked = this->ledger_.asked();
  std::vector<Block> blocks = this->make_all(heap, 64, kMiB / (64 + kRedZone) * 9 / 10);
  EXPECT_EQ(this->ledger_.asked(), asked);
  EXPECT_TRUE(heap.reserve(0));
  EXPECT_EQ(this->ledger_.asked(), asked);
  this->end(heap, blocks);
  this->end(heap, first);
  this->expect_empty(heap);
}

TYPED_TEST(Heaps, Stats_AddUp) {
  TypeParam heap({.name = "orders", .limit_bytes = 64 * kMiB}, this->source());
  std::vector<Block> blocks;
  std::size_t usable = 0;
  for (std::size_t i = 0; i < 3000; ++i) {
    blocks.push_back(this->make(heap, i * 37 % 2000));
    usable += heap.usable_size(blocks.back().at) + kRedZone;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    blocks.push_back(this->make(heap, 50'000 + i));
    usable += heap.usable_size(blocks.back().at);
  }
  const HeapStats stats = heap.stats();
  EXPECT_STREQ(stats.name, "orders");
  EXPECT_STREQ(heap.name(), "orders");
  EXPECT_EQ(stats.limit_bytes, 64 * kMiB);
  EXPECT_EQ(stats.live_objects, blocks.size());
  EXPECT_EQ(stats.live_bytes, usable);
  EXPECT_EQ(stats.large_blocks, 4U);
  EXPECT_LE(stats.live_bytes, stats.used_bytes);
  EXPECT_LE(stats.used_bytes, stats.held_bytes);
  EXPECT_EQ(stats.held_bytes, this->ledger_.bytes());
  EXPECT_EQ(stats.slabs + stats.large_blocks, this->ledger_.takes() - this->ledger_.gives());
  EXPECT_EQ(stats.conflicts, 0U);
  this->end(heap, blocks);
  this->expect_empty(heap);
}

// ---- the limit ----

TYPED_TEST(Heaps, LimitOfPages_ExactAndAllOfItUsable) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, kHeapPageBytes - 1, kHeapPageBytes, 3 * kHeapPageBytes,
                                  5 * kHeapPageBytes + 1, 16 * kHeapPageBytes, kMiB, kMiB + 4095}) {
    SCOPED_TRACE(limit);
    TypeParam heap({.limit_bytes = limit}, this->source());
    for (const std::size_t bytes : {16U, 1024U, 64U, 4096U}) {
      std::vector<Block> blocks = this->make_all(heap, bytes - kRedZone);
      const HeapStats stats = heap.stats();
      EXPECT_LE(stats.used_bytes, limit);
      EXPECT_EQ(this->make(heap, bytes - kRedZone).at, nullptr);
      if (limit >= 2 * bytes) {
        const std::size_t pages = limit / kHeapPageBytes;
        // All pages of slots, except what the slabs' own heads take of them.
        const std::size_t heads = (pages / 15 + 1) * (kHeapPageBytes + bytes);
        EXPECT_GE(stats.live_bytes + heads, pages * kHeapPageBytes) << bytes;
      }
      heap::Inside::check_invariants(heap);
      this->end(heap, blocks);
      this->expect_empty(heap);
    }
  }
}

TYPED_TEST(Heaps, LimitOfLargeBlocks_ExactToTheByte) {
  std::size_t needed = 0;
  {
    TypeParam heap({}, this->source());
    const Block block = this->make(heap, 300'000);
    needed = heap.stats().used_bytes;
    this->end(heap, block);
    EXPECT_EQ(heap.stats().used_bytes, 0U);
  }
  TypeParam enough({.limit_bytes = needed}, this->source()), less({.limit_bytes = needed - 1}, this->source());
  for (int i = 0; i < 10; ++i) {
    const Block block = this->make(enough, 300'000);
    EXPECT_NE(block.at, nullptr);
    EXPECT_EQ(enough.allocate(1), nullptr);
    EXPECT_EQ(enough.allocate(20'000), nullptr);
    this->end(enough, block);
    EXPECT_EQ(less.allocate(300'000), nullptr);
    const Block other = this->make(less, 299'999);
    EXPECT_NE(other.at, nullptr);
    this->end(less, other);
  }
}

// on_limit does this in these tests.
template <class H>
struct Relief {
  H* heap = nullptr;
  std::vector<void*> spare;
  std::size_t calls = 0;
  std::size_t bytes = 0;  // asked for in the last call

  bool operator()(std::size_t asked_for) noexcept {
    ++calls;
    bytes = asked_for;
    if (spare.empty()) return false;
    heap->deallocate(spare.back());
    spare.pop_back();
    return true;
  }
};

TYPED_TEST(Heaps, OnLimitThatFrees_AllocationSucceeds) {
  Relief<TypeParam> relief;
  TypeParam heap({.limit_bytes = 64 * kKiB, .on_limit = std::ref(relief)}, this->source());
  relief.heap = &heap;
  std::vector<Block> blocks = this->make_all(heap, 100);
  EXPECT_EQ(relief.calls, 1U);
  EXPECT_GE(relief.bytes, 100U);
  for (const Block& block : blocks) relief.spare.push_back(block.at);
  relief.calls = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) ASSERT_NE(heap.allocate(100), nullptr) << i;
  EXPECT_EQ(relief.calls, blocks.size()) << "one call for each";
  EXPECT_EQ(heap.allocate(100), nullptr);
  EXPECT_EQ(heap.stats().live_objects, blocks.size());
  heap::Inside::check_invariants(heap);
}

TYPED_TEST(Heaps, OnLimitWhereMemoryIsOut_NotAsked) {
  Relief<TypeParam> relief;
  TypeParam heap({.limit_bytes = kMiB, .on_limit = std::ref(relief)}, this->source());
  this->ledger_.refuse_from = 0;
  EXPECT_EQ(heap.allocate(100), nullptr);
  EXPECT_EQ(heap.allocate(100'000), nullptr);
  EXPECT_EQ(relief.calls, 0U);
}

// ---- a source that refuses ----

// The same calls as far as they succeed.
template <class Test, class H>
void exercise(Test& test, H& heap) {
  std::vector<Block> blocks;
  static_cast<void>(heap.reserve(100 * kKiB));
  for (std::size_t i = 0; i < 1500; ++i) {
    const Block block = test.make_(heap, i * 29 % 700, std::size_t{1} << i % 7);
    if (block.at != nullptr) blocks.push_back(block);
    if (i % 250 == 125) {
      const Block large = test.make_(heap, 10'000 * (i / 250 + 1), std::size_t{1} << (i / 250 * 3));
      if (large.at != nullptr) blocks.push_back(large);
    }
    if (i % 3 == 0 && !blocks.empty()) {
      test.end_(heap, blocks.back());
      blocks.pop_back();
    }
  }
  heap::Inside::check_invariants(heap);
  for (const Block& block : blocks) test.end_(heap, block);
  heap.trim();
  const HeapStats stats = heap.stats();
  EXPECT_EQ(stats.live_objects, 0U);
  heap::Inside::check_invariants(heap);
}

template <class H>
class FaultyHeaps : public Heaps<H> {
 public:
  static Block make_(H& heap, std::size_t bytes, std::size_t alignment) { return Heaps<H>::make(heap, bytes, alignment); }
  static void end_(H& heap, const Block& block) { Heaps<H>::end(heap, block); }
};
TYPED_TEST_SUITE(FaultyHeaps, Kinds, HeapName);

TYPED_TEST(FaultyHeaps, EveryTakeRefusedInTurn_HeapStaysWhole) {
  std::size_t all = 0;
  {
    TypeParam heap({}, this->source());
    exercise(*this, heap);
    all = this->ledger_.asked();
  }
  EXPECT_GT(all, 10U);
  for (std::size_t k = 0; k < all; ++k) {
    for (const bool for_ever : {false, true}) {
      SCOPED_TRACE(testing::Message() << "take " << k << (for_ever ? " and all after it" : ""));
      Ledger ledger;
      {
        TypeParam heap({}, LedgerSlabs{&ledger});
        (for_ever ? ledger.refuse_from : ledger.refuse_at) = k;
        exercise(*this, heap);
        ledger.refuse_from = Ledger::kNever;
        const Block block = this->make_(heap, 50'000, 16), small = this->make_(heap, 50, 16);
        EXPECT_NE(block.at, nullptr) << "there is memory again";
        EXPECT_NE(small.at, nullptr);
        heap.release_all();
        exercise(*this, heap);
      }
      ASSERT_EQ(ledger.takes(), ledger.gives());
      ASSERT_EQ(ledger.strays(), 0U);
    }
  }
}

// ---- the end ----

TYPED_TEST(Heaps, Destruction_OneCallASlabHoweverManyObjects) {
  std::size_t slabs = 0, larges = 0;
  {
    TypeParam heap({}, this->source());
    for (int i = 0; i < 100'000; ++i) ASSERT_NE(heap.allocate(24), nullptr);
    for (int i = 0; i < 5; ++i) ASSERT_NE(heap.allocate(40'000), nullptr);
    slabs = heap.stats().slabs;
    larges = heap.stats().large_blocks;
    EXPECT_EQ(this->ledger_.gives(), 0U);
    EXPECT_LE(slabs, 100'000U * (32 + kRedZone) / (15 * kHeapPageBytes) + 3);
  }
  EXPECT_EQ(this->ledger_.gives(), slabs + larges);
}

TYPED_TEST(Heaps, OneSizeAfterTheOther_HeldStaysNearThePeak) {
  TypeParam heap({}, this->source());
  std::size_t most = 0;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t bytes : {32U, 200U, 56U, 1000U, 96U, 4000U, 400U}) {
      std::vector<Block> blocks = this->make_all(heap, bytes, 4 * kMiB / bytes);
      most = std::max(most, this->ledger_.bytes());
      this->end(heap, blocks);
    }
  EXPECT_LE(most, 4 * kMiB * 16 / 10) << "4 MiB at most are in use at one time";
  this->expect_empty(heap);
}

}  // namespace
}  // namespace freehold::test
