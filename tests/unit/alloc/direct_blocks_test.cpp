// SPDX-License-Identifier: MIT
#include "freehold/alloc/direct_blocks.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using test::all_zero;
using test::FakePages;
using test::SmallConfig;
using test::Stamped;

constexpr std::size_t kPage = SmallConfig::kPageBytes;
constexpr std::size_t kMiB = std::size_t{1} << 20;

class TestBlocks {
 public:
  using BudgetType = Budget<sync::NativeAtomics, SmallConfig>;
  using Type = DirectBlocks<sync::NativeAtomics, SmallConfig, FakePages>;

  TestBlocks() { blocks_->attach(pages, budget); }
  Type* operator->() { return blocks_.get(); }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 1) {
    bool zero = false;
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

TEST(DirectBlocks, Table_GrowsAndEveryBlockIsFound) {
  TestBlocks blocks;
  std::vector<void*> all;
  for (std::size_t i = 0; i < 1500; ++i) {
    all.push_back(blocks.allocate((1 + i % 3) * kPage));
    ASSERT_NE(all.back(), nullptr);
    ASSERT_TRUE(i % 50 != 0 || blocks.check()) << i;
  }
  EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(blocks->bytes_of(all[i]), (1 + i % 3) * kPage) << i;
  std::shuffle(all.begin(), all.end(), std::mt19937(5));
  for (void* block : all) blocks.free(block);
  (void)blocks->drop_kept(blocks.now);
  EXPECT_TRUE(blocks.check());
  EXPECT_EQ(blocks.pages.mapped_bytes(), blocks->metadata_bytes()) << "former tables went back";
}

// ---- kept mappings ----------------------------------------------------------------------------------------------------

TEST(DirectBlocks, Kept_LongerOne_IsTakenWholeOrInPart) {
  TestBlocks blocks;
  void* const in_use = blocks.allocate(64 * kMiB);  // so that much may be kept
  auto* const kept = static_cast<char*>(blocks.allocate(4 * kMiB));
  blocks.free(kept);
  const auto maps = blocks.pages.calls(FakePages::kMap);
  void* const third = blocks.allocate(kMiB + kPage);
  EXPECT_EQ(third, kept) << "more than half of it would be wasted: only its front";
  EXPECT_EQ(blocks->kept_bytes(), 3 * kMiB - kPage);
  EXPECT_TRUE(blocks.check());
  void* const rest = blocks.allocate(3 * kMiB / 2);
  EXPECT_EQ(rest, kept + kMiB + kPage) << "whole";
  EXPECT_FALSE(blocks->keeps_some());
  EXPECT_EQ(blocks.pages.calls(FakePages::kMap), maps);
  for (void* block : {third, rest, in_use}) blocks.free(block);
  EXPECT_TRUE(blocks.check());
}

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

TEST(DirectBlocks, Kept_ShorterOne_GrowsAndReadsAsZeroIfAsked) {
  for (const bool zeroed : {false, true}) {
    TestBlocks blocks;
    void* const in_use = blocks.allocate(64 * kMiB);  // so that much may be kept
    void* const kept = blocks.allocate(10 * kPage);
    std::memset(kept, 7, 10 * kPage);
    blocks.free(kept);
    const auto maps = blocks.pages.calls(FakePages::kMap);
    bool zero = zeroed;
    auto* const block = static_cast<unsigned char*>(blocks->allocate(kMiB + 40 * kPage, 1, zero, blocks.now));
    EXPECT_EQ(blocks.pages.calls(FakePages::kMap), maps);
    EXPECT_EQ(zero, zeroed);
    EXPECT_EQ(all_zero(block, 10 * kPage), zeroed);
    EXPECT_TRUE(all_zero(block + 10 * kPage, kMiB + 30 * kPage));
    EXPECT_EQ(blocks->live_bytes(), 65 * kMiB + 40 * kPage);
    EXPECT_TRUE(blocks.check());
    blocks.pages.fail(1, 1, FakePages::kRemap);
    blocks.free(block);
    bool fresh = zeroed;
    void* const other = blocks->allocate(2 * kMiB, 1, fresh, blocks.now);
    EXPECT_NE(other, nullptr) << "the system refuses to make it longer";
    EXPECT_TRUE(fresh);
    EXPECT_FALSE(blocks->keeps_some());
    blocks.free(in_use);
    EXPECT_TRUE(blocks.check());
  }
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

TEST(DirectBlocks, Kept_TheLatestStay) {
  TestBlocks blocks;
  void* const early = blocks.allocate(kMiB / 2);
  void* const late = blocks.allocate(kMiB * 3 / 4);
  blocks.free(early);
  blocks.free(late);
  EXPECT_EQ(blocks->kept_bytes(), kMiB * 3 / 4);
  EXPECT_EQ(blocks.allocate(kMiB * 3 / 4), late);
  blocks.free(late);
  void* const too_large = blocks.allocate(8 * kMiB, 4 * kMiB);
  blocks.free(too_large);
  EXPECT_EQ(blocks->kept_bytes(), kMiB * 3 / 4) << "ending it would not make room for so much";
  EXPECT_TRUE(blocks.check());
}

TEST(DirectBlocks, Kept_NoMoreThanTheBudgetAllows) {
  TestBlocks blocks;
  std::vector<void*> all;
  for (int i = 0; i < 30; ++i) all.push_back(blocks.allocate(kMiB / 4));
  for (void* block : all) {
    blocks.free(block);
    EXPECT_LE(blocks.budget.excess(), 0);
    EXPECT_TRUE(blocks.check());
  }
  EXPECT_GT(blocks->kept_bytes(), 0U);
  EXPECT_LE(blocks->kept_bytes(), static_cast<std::uint64_t>(SmallConfig::kKeepBytes));
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

// What is mapped to align a block goes back at once, so that the block counts as what it is; its pages move like others'.
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

// ---- the system refuses -----------------------------------------------------------------------------------------------

// A life in which every kind of call is made; frees everything. Returns the requests that were refused.
unsigned live(TestBlocks& blocks) {
  constexpr std::size_t kUnit = 8 * kPage;
  unsigned refused = 0;
  std::vector<Stamped> all;
  for (unsigned i = 0; i < 40; ++i) {
    const std::size_t bytes = (1 + i % 5) * kUnit;
    void* const block = blocks.allocate(bytes, i % 7 == 0 ? 8 * kUnit : 1);
    block == nullptr ? ++refused : (all.emplace_back(block, bytes, i + 1), 0U);
    if (i % 3 == 0 && !all.empty()) {
      EXPECT_TRUE(all.front().intact());
      blocks.free(all.front().memory);
      all.erase(all.begin());
    }
    if (i % 5 == 0 && i % 7 != 0 && !all.empty()) {
      Stamped& b = all.back();
      const std::size_t more = b.bytes + 4 * kUnit;
      if (void* const moved = blocks->resize(b.memory, more); moved != nullptr) {
        b.memory = static_cast<unsigned char*>(moved);
        EXPECT_TRUE(b.intact());
      } else {
        ++refused;
      }
    }
  }
  EXPECT_TRUE(blocks->check_invariants());
  void* const from = blocks.pages.map(kUnit);
  if (from != nullptr) {
    std::memset(from, 8, kUnit);
    void* const block = blocks->adopt(from, kUnit, 2 * kUnit, blocks.now);
    EXPECT_EQ(static_cast<unsigned char*>(block != nullptr ? block : from)[kUnit - 1], 8);
    if (block != nullptr) blocks.free(block);
  }
  for (const Stamped& b : all) {
    EXPECT_TRUE(b.intact());
    blocks.free(b.memory);
  }
  (void)blocks->drop_kept(~std::uint64_t{0});
  return refused;
}

TEST(DirectBlocks, EveryCallRefusedOnceOrForEver_NothingIsLost) {
  for (const bool once : {true, false})
    for (std::uint64_t k = 1;; k += once ? 1 : 1 + k / 8) {
      TestBlocks blocks;
      blocks.pages.fail(k, once ? k : FakePages::kNever);
      (void)live(blocks);
      ASSERT_EQ(blocks->live_bytes() + blocks->kept_bytes(), 0U) << k;
      ASSERT_TRUE(blocks->check_invariants()) << k;
      ASSERT_EQ(blocks.budget.footprint(), 0) << k;
      const bool done = blocks.pages.counted() < k;
      blocks.pages.heal();
      ASSERT_EQ(live(blocks), 0U) << k << ": as good as new";
      ASSERT_FALSE(testing::Test::HasFailure()) << "call " << k;
      if (done) break;
    }
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
