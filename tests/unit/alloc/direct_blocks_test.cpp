// SPDX-License-Identifier: MIT
#include "freehold/alloc/large/direct_blocks.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::all_zero;
using test::FakePages;
using test::SmallConfig;
using test::Stamped;

const std::size_t kPage = SmallConfig::page_bytes();
constexpr std::size_t kMiB = std::size_t{1} << 20;

class TestBlocks {
 public:
  using BudgetType = Budget<sync::NativeAtomics, SmallConfig>;
  using Type = DirectBlocks<sync::NativeAtomics, SmallConfig, FakePages>;

  explicit TestBlocks(bool huge = false) { blocks_->attach(pages, budget, huge); }
  Type* operator->() { return blocks_.get(); }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 1, bool zero = false) {
    void* const block = blocks_->allocate(bytes, alignment, zero, now);
    if (block != nullptr && zero) {
      EXPECT_TRUE(all_zero(block, bytes)) << "a wrong claim";
    }
    return block;
  }
  void free(void* block) { EXPECT_TRUE(blocks_->free(block, now)); }
  [[nodiscard]] bool check() {
    const auto f = budget.figures();
    return blocks_->check_invariants() && f.direct == static_cast<std::int64_t>(blocks_->live_bytes()) &&
           f.kept == static_cast<std::int64_t>(blocks_->kept_bytes()) &&
           pages.mapped_bytes() == blocks_->live_bytes() + blocks_->kept_bytes() + blocks_->metadata_bytes();
  }

  FakePages pages;
  BudgetType budget;
  std::uint64_t now = 1'000'001;

 private:
  std::unique_ptr<Type> blocks_ = std::make_unique<Type>();
};

TEST(DirectBlocks, OfAChunkOrMore_HugePagesUnlessItHasToReadAsZero) {
  TestBlocks blocks(true);
  (void)blocks.allocate(test::kChunk - kPage);
  (void)blocks.allocate(9 * kMiB, 1, true);
  (void)blocks.allocate(9 * kMiB, 8 * kMiB);
  EXPECT_EQ(blocks.pages.huge_advice().size(), 0U);
  void* const block = blocks.allocate(9 * kMiB);
  ASSERT_EQ(blocks.pages.huge_advice().size(), 1U);
  EXPECT_EQ(blocks.pages.huge_advice()[0].address, reinterpret_cast<std::uintptr_t>(block));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (2 * kMiB), 0U);
  EXPECT_TRUE(blocks.check()) << "nothing of the way to there stays mapped";
}

// The system joins none of these to another, and a process may have some 65,530.
TEST(DirectBlocks, InHugePages_FourThousandAtMost) {
  TestBlocks blocks(true);
  std::vector<void*> all(4200);
  for (void*& block : all) block = blocks->resize(blocks.allocate(test::kChunk), 2 * test::kChunk);  // stays one of them
  EXPECT_EQ(blocks.pages.huge_advice().size(), 4096U);
  EXPECT_TRUE(blocks.check());
  for (void* block : all) blocks.free(block);
  (void)blocks->drop_kept(~std::uint64_t{0});
  EXPECT_TRUE(blocks.check());
  (void)blocks.allocate(test::kChunk);
  EXPECT_EQ(blocks.pages.huge_advice().size(), 4097U) << "there is room again";
}

// ---- kept mappings ----------------------------------------------------------------------------------------------------

// Blocks in pieces of it would end elsewhere each time, until each of its pages was touched.
TEST(DirectBlocks, Kept_ShorterThanAChunk_StaysWhole) {
  TestBlocks blocks;
  void* const kept = blocks.allocate(18 * kPage);
  blocks.free(kept);
  void* const shorter = blocks.allocate(8 * kPage);
  void* const longer = blocks.allocate(25 * kPage);
  EXPECT_EQ(blocks->kept_bytes(), 18 * kPage) << "neither took a piece, nor made it much longer";
  EXPECT_EQ(blocks.pages.calls(FakePages::kRemap), 0U);
  void* const half = blocks.allocate(9 * kPage);
  EXPECT_EQ(half, kept);
  EXPECT_FALSE(blocks->keeps_some());
  for (void* block : {shorter, longer, half}) blocks.free(block);
  EXPECT_EQ(blocks.allocate(17 * kPage), kept) << "the shortest of those that fit";
  EXPECT_NE(blocks.allocate(30 * kPage), nullptr);
  EXPECT_EQ(blocks.pages.calls(FakePages::kRemap), 1U) << "most of its pages were there";
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, Kept_ShorterOne_Grows) {
  TestBlocks blocks;
  void* const in_use = blocks.allocate(64 * kMiB);  // so that much may be kept
  void* const kept = blocks.allocate(10 * kPage);
  std::memset(kept, 7, 10 * kPage);
  blocks.free(kept);
  const auto maps = blocks.pages.calls(FakePages::kMap);
  bool zero = true;
  auto* const block = static_cast<unsigned char*>(blocks->allocate(kMiB + 40 * kPage, 1, zero, blocks.now));
  EXPECT_EQ(blocks.pages.calls(FakePages::kMap), maps);
  EXPECT_FALSE(zero);
  EXPECT_TRUE(all_zero(block + 10 * kPage, kMiB + 30 * kPage));
  EXPECT_EQ(blocks->live_bytes(), 65 * kMiB + 40 * kPage);
  EXPECT_TRUE(blocks.check());
  blocks.pages.fail(1, 1, FakePages::kRemap);
  blocks.free(block);
  void* const other = blocks->allocate(2 * kMiB, 1, zero, blocks.now);
  EXPECT_NE(other, nullptr) << "the system refuses to make it longer";
  EXPECT_TRUE(zero);
  EXPECT_FALSE(blocks->keeps_some());
  blocks.free(in_use);
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, Kept_SeveralShorterOnes_AreJoined) {
  TestBlocks blocks;
  void* const in_use = blocks.allocate(128 * kMiB);  // so that much may be kept
  void* short_ones[3];
  for (std::size_t i = 0; i < 3; ++i) std::memset(short_ones[i] = blocks.allocate((i + 1) * kMiB), 7, (i + 1) * kMiB);
  for (void* block : short_ones) blocks.free(block);
  blocks.pages.heal();
  bool zero = true;
  auto* const joined = static_cast<unsigned char*>(blocks->allocate(5 * kMiB + kMiB / 2, 1, zero, blocks.now));
  ASSERT_NE(joined, nullptr);
  EXPECT_FALSE(zero);
  EXPECT_EQ(std::count(joined, joined + 5 * kMiB + kMiB / 2, 7), std::ptrdiff_t{5 * kMiB + kMiB / 2});
  EXPECT_EQ(blocks->kept_bytes(), kMiB / 2) << "all came out of them";
  EXPECT_TRUE(blocks.check());
  EXPECT_EQ(blocks->resize(joined, 4 * kMiB), joined);
  EXPECT_TRUE(blocks.check());
  const auto moves = blocks.pages.calls(FakePages::kMoveOnto);
  blocks.free(joined);
  EXPECT_EQ(blocks.allocate(4 * kMiB), joined) << "as one";
  EXPECT_EQ(blocks.pages.calls(FakePages::kMoveOnto), moves);
  joined[4 * kMiB - 1] = 9;
  auto* const longer = static_cast<unsigned char*>(blocks->resize(joined, 5 * kMiB));
  ASSERT_NE(longer, nullptr);
  EXPECT_EQ(longer[4 * kMiB - 1], 9);
  EXPECT_TRUE(all_zero(longer + 4 * kMiB, kMiB));
  EXPECT_TRUE(blocks.check());
  blocks.free(longer);
  blocks.free(in_use);
  EXPECT_TRUE(blocks.check());
}

// Each is a mapping of the system's, which allows a process some 65,530.
TEST(DirectBlocks, Joined_OfSixteenMappingsAtMost) {
  TestBlocks blocks;
  void* const in_use = blocks.allocate(400 * kMiB);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> all;
    for (int i = 0; i < 20; ++i) all.push_back(blocks.allocate(kMiB));
    for (void* block : all) blocks.free(block);
    const auto moves = blocks.pages.calls(FakePages::kMoveOnto);
    void* const joined = blocks.allocate(19 * kMiB);
    EXPECT_EQ(blocks.pages.calls(FakePages::kMoveOnto) - moves, 15U) << "and one new";
    EXPECT_TRUE(blocks.check());
    blocks.free(joined);
  }
  blocks.free(in_use);
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, Joined_ManyBlocks_TheirMappingsAreBounded) {
  TestBlocks blocks;
  std::vector<void*> joined;
  for (int i = 0; i < 300; ++i) {
    void* pieces[16];
    for (void*& piece : pieces) piece = blocks.allocate(kPage);
    for (void* piece : pieces) blocks.free(piece);
    joined.push_back(blocks.allocate(kMiB));
  }
  EXPECT_LE(blocks.pages.calls(FakePages::kMoveOnto), 4096U);
  EXPECT_TRUE(blocks.check());
  for (void* block : joined) blocks.free(block);
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, Joined_TheSystemRefusesAPiece_ABlockComesAnyway) {
  for (unsigned call = 1; call <= 3; ++call) {
    TestBlocks blocks;
    void* const in_use = blocks.allocate(64 * kMiB);
    void* short_ones[3];
    for (void*& block : short_ones) block = blocks.allocate(kMiB);
    for (void* block : short_ones) blocks.free(block);
    blocks.pages.fail(call, call, FakePages::kMoveOnto);
    void* const block = blocks.allocate(3 * kMiB);
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, 3 * kMiB);
    EXPECT_TRUE(blocks.check());
    blocks.free(block);
    const auto moves = blocks.pages.calls(FakePages::kMoveOnto);
    for (void*& again : short_ones) again = blocks.allocate(kMiB);
    for (void* again : short_ones) blocks.free(again);
    blocks.free(blocks.allocate(12 * kMiB));
    EXPECT_EQ(blocks.pages.calls(FakePages::kMoveOnto), moves) << "each refusal leaves addresses behind that may be others'";
    blocks.free(in_use);
    EXPECT_TRUE(blocks.check());
  }
}

// The whole target would be populated first, and be locked beside what is moved there.
TEST(DirectBlocks, LockedMemory_IsNotJoined) {
  TestBlocks blocks;
  blocks.pages.locks_all = true;
  void* const in_use = blocks.allocate(64 * kMiB);
  void* short_ones[3];
  for (void*& block : short_ones) block = blocks.allocate(kMiB);
  for (void* block : short_ones) blocks.free(block);
  void* const block = blocks.allocate(3 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(blocks.pages.calls(FakePages::kMoveOnto), 0U);
  EXPECT_TRUE(blocks.check());
  blocks.free(block);
  blocks.free(in_use);
}

// A limit of all memory is kept, and a block of half the limit can grow.
TEST(DirectBlocks, Joined_Longer_IsHeldTwiceInSmallPartsOnly) {
  TestBlocks blocks;
  void* const in_use = blocks.allocate(256 * kMiB);
  void* short_ones[4];
  for (void*& block : short_ones) std::memset(block = blocks.allocate(4 * kMiB), 7, 4 * kMiB);
  for (void* block : short_ones) blocks.free(block);
  auto* const joined = static_cast<unsigned char*>(blocks.allocate(16 * kMiB));
  const std::size_t before = blocks.pages.resident_bytes();
  blocks.pages.watch_residence();
  auto* const longer = static_cast<unsigned char*>(blocks->resize(joined, 20 * kMiB));
  ASSERT_NE(longer, nullptr);
  EXPECT_EQ(std::count(longer, longer + 16 * kMiB, 7), std::ptrdiff_t{16 * kMiB});
  EXPECT_LE(blocks.pages.most_resident_bytes(), before + 2 * kMiB);
  EXPECT_TRUE(blocks.check());
  blocks.free(longer);
  blocks.free(in_use);
}

// As a program that decodes pictures: soon its pages come out of what it freed before, whatever their sizes.
TEST(DirectBlocks, SizesThatVary_FewPagesComeFromTheSystem) {
  TestBlocks blocks;
  std::mt19937 random(42);
  std::vector<void*> held(20);
  std::uint64_t maps = 0;
  for (int round = 0; round < 500; ++round) {
    if (round == 100) maps = blocks.pages.calls(FakePages::kMap);
    void*& place = held[random() % held.size()];
    void* const fresh = blocks.allocate((5 + random() % 21) * 4 * kPage);
    if (place != nullptr) blocks.free(place);
    place = fresh;
    EXPECT_LE(blocks.budget.excess(), 0);
    blocks.now += 2;
  }
  EXPECT_LE(blocks.pages.calls(FakePages::kMap) - maps, 10U);
  for (void* block : held)
    if (block != nullptr) blocks.free(block);
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, TryDropOneKept_TheOldestIfItIsOldEnough) {
  TestBlocks blocks;
  void* const a = blocks.allocate(5 * kPage);
  void* const b = blocks.allocate(10 * kPage);
  blocks->try_drop_one_kept(blocks.now);
  blocks.free(a);
  blocks.now += 100;
  blocks.free(b);
  blocks->try_drop_one_kept(blocks.now - 101);
  EXPECT_EQ(blocks->kept_bytes(), 15 * kPage);
  blocks->try_drop_one_kept(blocks.now - 100);
  EXPECT_EQ(blocks->kept_bytes(), 10 * kPage);
  blocks->try_drop_one_kept(blocks.now - 100);
  EXPECT_EQ(blocks->kept_bytes(), 10 * kPage) << "the other is younger";
  blocks->try_drop_one_kept(blocks.now);
  EXPECT_FALSE(blocks->keeps_some());
  EXPECT_TRUE(blocks.check());
}

// A program whose large blocks come and go: soon they are kept although they are larger than what every program may keep.
TEST(DirectBlocks, EndedAndAskedForAgainSoon_IsRegrettedAndKeptThen) {
  TestBlocks blocks;
  for (const std::uint64_t start : {1'000'001, 1'000'000}) {  // an odd millisecond and an even one
    TestBlocks soon;
    soon.now = start;
    for (int i = 0; i < 3; ++i) soon.free(soon.allocate(8 * kMiB));
    EXPECT_EQ(soon->kept_bytes(), 8 * kMiB) << start;
    const auto unmaps = soon.pages.calls(FakePages::kUnmap);
    for (int i = 0; i < 100; ++i) soon.free(soon.allocate(8 * kMiB));
    EXPECT_EQ(soon.pages.calls(FakePages::kUnmap), unmaps);
    EXPECT_TRUE(soon.check());
  }
  for (int i = 0; i < 10; ++i) {
    blocks.free(blocks.allocate(8 * kMiB));
    blocks.now += 1500;
  }
  EXPECT_EQ(blocks->kept_bytes(), 0U) << "not soon";
  EXPECT_TRUE(blocks.check());
}

// ---- other sizes ------------------------------------------------------------------------------------------------------

TEST(DirectBlocks, Resize_UpAndDown_KeepsTheContentAndCopiesNothing) {
  TestBlocks blocks;
  std::mt19937 random(2);
  std::vector<Stamped> all;
  for (unsigned i = 0; i < 8; ++i) all.emplace_back(blocks.allocate(kMiB), kMiB, i + 1);
  for (int step = 0; step < 500; ++step) {
    Stamped& b = all[random() % all.size()];
    const std::size_t bytes = (1 + random() % (3 * kMiB / kPage)) * kPage, kept = std::min(b.bytes, bytes);
    void* const moved = blocks->resize(b.memory, bytes);
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(blocks->bytes_of(moved), bytes);
    EXPECT_TRUE(moved == b.memory || blocks->bytes_of(b.memory) == 0U);
    b.memory = static_cast<unsigned char*>(moved);
    EXPECT_TRUE(all_zero(b.memory + b.bytes, bytes > b.bytes ? bytes - b.bytes : 0)) << "new pages read as zero";
    b.bytes = kept;
    ASSERT_TRUE(b.intact()) << step;
    b.bytes = bytes;
    b.write(kept);
    ASSERT_TRUE(blocks.check()) << step;
  }
  for (const Stamped& b : all) {
    EXPECT_TRUE(b.intact());
    blocks.free(b.memory);
  }
  EXPECT_TRUE(blocks.check());
}

// Memory that is mapped to align a block goes back at once, so that the block counts as what it is; its pages move like
// others'.
TEST(DirectBlocks, AlignedBlock_HasNoSlack_AndIsResizedByItsPages) {
  TestBlocks blocks;
  for (const std::size_t bytes : {64 * kMiB, kMiB / 2, kMiB / 4 - kPage}) {
    Stamped b(blocks.allocate(kMiB, 8 * kMiB), kMiB, 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.memory) % (8 * kMiB), 0U);
    EXPECT_EQ(blocks->live_bytes(), kMiB);
    void* const moved = blocks->resize(b.memory, bytes);
    ASSERT_NE(moved, nullptr) << bytes;
    EXPECT_EQ(moved == b.memory, bytes < kMiB);
    b.memory = static_cast<unsigned char*>(moved);
    b.bytes = std::min(bytes, kMiB);
    EXPECT_TRUE(b.intact());
    EXPECT_TRUE(all_zero(b.memory + b.bytes, bytes - b.bytes));
    EXPECT_EQ(blocks->live_bytes(), bytes);
    EXPECT_TRUE(blocks.check());
    blocks.free(moved);
  }
}

TEST(DirectBlocks, Adopt_TakesTheContentAndLeavesTheRangeMapped) {
  TestBlocks blocks;
  void* const from = blocks.pages.map(kMiB);
  for (const std::size_t bytes : {kMiB, 3 * kMiB}) {
    std::memset(from, 5, kMiB);
    void* const block = blocks->adopt(from, kMiB, bytes, blocks.now);
    if (block == nullptr) GTEST_SKIP() << "the kernel cannot";
    EXPECT_EQ(blocks->bytes_of(block), bytes);
    const auto* p = static_cast<const unsigned char*>(block);
    EXPECT_EQ(std::count(p, p + kMiB, 5), static_cast<std::ptrdiff_t>(kMiB));
    EXPECT_TRUE(all_zero(p + kMiB, bytes - kMiB));
    std::memset(from, 6, kMiB);
    EXPECT_EQ(p[0], 5) << "apart";
    blocks.free(block);
  }
  blocks.pages.fail_from_now_on(FakePages::kMoveOut);
  EXPECT_EQ(blocks->adopt(from, kMiB, 2 * kMiB, blocks.now), nullptr);
  EXPECT_EQ(static_cast<unsigned char*>(from)[kMiB - 1], 6) << "untouched";
  EXPECT_TRUE(blocks.pages.unmap(from, kMiB));
  EXPECT_TRUE(blocks.check());
}

// Buffers that grow and are dropped, again and again, find the pages of the last ones, and room.
TEST(DirectBlocks, Adopt_WhereOneIsKept_UsesItsPagesAndGrowsInPlace) {
  TestBlocks blocks;
  void* const from = blocks.pages.map(kMiB / 4);
  std::memset(from, 5, kMiB / 4);
  blocks.free(blocks.allocate(kMiB));
  const auto calls = blocks.pages.calls(FakePages::kMoveOut) + blocks.pages.calls(FakePages::kRemap);
  ASSERT_EQ(blocks->kept_bytes(), kMiB);
  void* const block = blocks->adopt(from, kMiB / 4, kMiB / 2 + kPage, blocks.now);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(blocks->bytes_of(block), kMiB / 2 + kPage) << "what was asked for";
  EXPECT_EQ(blocks->resize(block, kMiB), block);
  EXPECT_EQ(blocks.pages.calls(FakePages::kMoveOut) + blocks.pages.calls(FakePages::kRemap), calls);
  const auto* const p = static_cast<const unsigned char*>(block);
  EXPECT_EQ(std::count(p, p + kMiB / 4, 5), static_cast<std::ptrdiff_t>(kMiB / 4));
  EXPECT_NE(blocks->resize(block, kMiB / 2), nullptr);
  EXPECT_EQ(blocks->live_bytes(), kMiB / 2) << "what shrinks gives its room back";
  EXPECT_TRUE(blocks.pages.unmap(from, kMiB / 4));
  EXPECT_TRUE(blocks.check());
}

// Many small mappings of one program would use up what the system allows it: blocks that became small are kept elsewhere.
TEST(DirectBlocks, SmallMappings_MadeByAdoptingOrShrinking_AreBounded) {
  constexpr std::size_t kMost = 1024;
  TestBlocks adopting, shrinking;
  void* const from = adopting.pages.map(10 * kPage);
  std::memset(from, 5, 10 * kPage);
  std::size_t adopted = 0, shrunk = 0;
  for (std::size_t i = 0; i < kMost + 50; ++i)
    adopted += adopting->adopt(from, 10 * kPage, 10 * kPage, adopting.now) != nullptr ? 1 : 0;
  EXPECT_LE(adopted, kMost);
  for (std::size_t i = 0; i < kMost + 50; ++i) {
    Stamped b(shrinking.allocate(kMiB + kPage), 1, 3);
    if (shrinking->resize(b.memory, 10 * kPage) != nullptr) {
      ++shrunk;
    } else {
      EXPECT_EQ(shrinking->bytes_of(b.memory), kMiB + kPage);
    }
  }
  EXPECT_EQ(shrunk, kMost);
  EXPECT_TRUE(shrinking.check());
}

// ---- threads ----------------------------------------------------------------------------------------------------------

TEST(DirectBlocks, Threads_BlocksStayApartAndFiguresAddUp) {
  TestBlocks blocks;
  std::atomic<bool> wrong{false};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Stamped> mine;
    for (int step = 0; step < 1500; ++step) {
      bool zero = false;
      const std::uint64_t now = 1'000'000 + static_cast<std::uint64_t>(step);
      if (random() % 2 == 0 && mine.size() < 20) {
        const std::size_t bytes = (1 + random() % 16) * kPage;
        void* const block = blocks->allocate(bytes, random() % 4 == 0 ? 16 * kPage : 1, zero, now);
        if (zero && !all_zero(block, bytes)) wrong = true;
        mine.emplace_back(block, bytes, random());
      } else if (!mine.empty()) {
        std::swap(mine[random() % mine.size()], mine.back());
        Stamped& b = mine.back();
        if (!b.intact()) wrong = true;
        if (random() % 3 == 0) {
          if (void* const moved = blocks->resize(b.memory, b.bytes + kPage); moved != nullptr) {
            b.memory = static_cast<unsigned char*>(moved);
            if (!b.intact()) wrong = true;
          }
        }
        if (!blocks->free(b.memory, now)) wrong = true;
        mine.pop_back();
      }
      if (step % 100 == 0) (void)blocks->drop_kept(now - 50);
    }
    for (const Stamped& b : mine)
      if (!b.intact() || !blocks->free(b.memory, 0)) wrong = true;
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back(work, t + 1);
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_EQ(blocks->live_bytes(), 0U);
  EXPECT_TRUE(blocks.check());
}

}  // namespace
}  // namespace freehold::alloc
