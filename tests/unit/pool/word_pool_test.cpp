#include "freehold/pool/word_pool.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/hooked_atomics.hpp"
#include "tests/unit/pool/pool_support.hpp"

namespace freehold::pool {
namespace {

using Blocks = test::TestBlocks<sync::NativeAtomics>;
using Hooked = test::TestBlocks<test::HookedAtomics>;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::uint32_t kMe = 1, kOther = 2;  // names of threads
constexpr unsigned kAnywhere = 0;             // no patience: take what there is

Cursor at(Leaf leaf) { return Cursor{leaf, Cursor::kNoBlock}; }

TEST(BlockShape, PartialLastWord_FullMaskCoversExactlyTheSlots) {
  for (std::uint32_t slots = 1; slots <= 4096; ++slots) {
    const BlockShape shape{slots};
    std::uint32_t sum = 0;
    for (unsigned w = 0; w < shape.words(); ++w) {
      const std::uint64_t full = shape.full(w);
      ASSERT_NE(full, 0U) << slots;
      ASSERT_EQ(full & (full + 1), 0U) << "a run of low bits, " << slots;
      sum += static_cast<std::uint32_t>(std::popcount(full));
    }
    ASSERT_EQ(sum, slots);
  }
}

TEST(WordPool, Publish_KeepsTheCallersShare_TheRestIsFree) {
  for (const std::uint32_t slots : {1U, 2U, 63U, 64U, 65U, 130U, 4096U})
    for (const unsigned keep : {0U, 1U, 5U, 64U}) {
      Blocks blocks(2, {{slots}});
      const Taken mine = blocks.give(1, 1, keep);
      EXPECT_EQ(mine.leaf, leaf_of(1, 0));
      EXPECT_EQ(static_cast<unsigned>(std::popcount(mine.bits)), std::min({keep, slots, 64U}));
      EXPECT_EQ(blocks.pool(1).free_slots(1), slots - std::min({keep, slots, 64U}));
      EXPECT_TRUE(blocks.check());
    }
}

TEST(WordPool, Take_EmptyPool_ReturnsNoBits) {
  Blocks blocks(130, {{64}});
  Cursor cursor;
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, 0U);
  EXPECT_EQ(cursor.held, Cursor::kNoBlock);
}

TEST(WordPool, Take_WholeWord_OneCallTakesAll64) {
  Blocks blocks(1, {{128}});
  blocks.give(0, 1);
  Cursor cursor;
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, kAll);
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, kAll);
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, 0U);
  EXPECT_TRUE(blocks.check());
}

TEST(WordPool, Take_PartOfAWord_TheLowestFirst) {
  Blocks blocks(1, {{64}});
  blocks.give(0, 1);
  Cursor cursor;
  EXPECT_EQ(blocks.pool(1).take(cursor, 3, kMe, kAnywhere).bits, 0b111U);
  EXPECT_EQ(blocks.pool(1).take(cursor, 2, kMe, kAnywhere).bits, 0b11000U);
  EXPECT_EQ(blocks.pool(1).take(cursor, 63, kMe, kAnywhere).bits, kAll << 5);
  EXPECT_TRUE(blocks.check());
}

TEST(WordPool, Take_PartialLastWord_NeverGivesASlotBeyondTheShape) {
  Blocks blocks(1, {{70}});
  blocks.give(0, 1);
  Cursor cursor;
  std::uint32_t got = 0;
  for (Taken t = blocks.pool(1).take(cursor, 64, kMe, kAnywhere); t.bits != 0;
       t = blocks.pool(1).take(cursor, 64, kMe, kAnywhere)) {
    EXPECT_EQ(t.bits & ~BlockShape{70}.full(word_of(t.leaf)), 0U);
    got += static_cast<std::uint32_t>(std::popcount(t.bits));
  }
  EXPECT_EQ(got, 70U);
}

TEST(WordPool, Take_CursorBehindTheOnlyFreeSlot_WrapsAround) {
  Blocks blocks(200, {{64}});
  blocks.give(3, 1);
  Cursor cursor = at(leaf_of(150, 0));
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).leaf, leaf_of(3, 0));
}

TEST(WordPool, Take_CursorInABlock_ContinuesUpwardsThere) {
  Blocks blocks(2, {{256}});
  blocks.give(0, 1);
  blocks.give(1, 1);
  Cursor cursor = at(leaf_of(1, 2));
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).leaf, leaf_of(1, 2));
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).leaf, leaf_of(1, 3));
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).leaf, leaf_of(1, 0));
}

TEST(WordPool, Take_AnothersBlock_IsPassedOverWhilePatienceLasts) {
  Blocks blocks(4, {{64}});
  for (std::uint32_t b = 0; b < 3; ++b) blocks.give(b, 1);
  Cursor other;
  EXPECT_EQ(block_of(blocks.pool(1).take(other, 1, kOther, 2).leaf), 0U);
  EXPECT_EQ(other.held, 0U);
  Cursor mine;  // stands in block 0, too
  EXPECT_EQ(block_of(blocks.pool(1).take(mine, 1, kMe, 2).leaf), 1U);
  EXPECT_EQ(mine.held, 1U);
  EXPECT_EQ(block_of(blocks.pool(1).take(mine, 1, kMe, 2).leaf), 1U) << "stays at home";
}

TEST(WordPool, Take_AllBlocksHeld_NothingUnderPatience_SharedWithout) {
  Blocks blocks(2, {{64}});
  blocks.give(0, 1);
  blocks.give(1, 1);
  Cursor a, b, mine;
  (void)blocks.pool(1).take(a, 1, 7, 9);
  (void)blocks.pool(1).take(b, 1, 8, 9);
  EXPECT_EQ(blocks.pool(1).take(mine, 1, kMe, 9).bits, 0U);
  EXPECT_NE(blocks.pool(1).take(mine, 1, kMe, 1).bits, 0U) << "more of them than patience";
  blocks.pool(1).let_go(mine, kMe);
  EXPECT_NE(blocks.pool(1).take(mine, 1, kMe, kAnywhere).bits, 0U);
}

TEST(WordPool, LetGo_AnothersHold_IsLeftAlone) {
  Blocks blocks(1, {{64}});
  blocks.give(0, 1);
  Cursor a, b;
  (void)blocks.pool(1).take(a, 1, kMe, kAnywhere);
  (void)blocks.pool(1).take(b, 1, kOther, kAnywhere);  // b holds it now
  blocks.pool(1).let_go(a, kMe);
  EXPECT_EQ(blocks.holder(0).load(std::memory_order_relaxed), Holder::at_work(kOther).value);
  blocks.pool(1).let_go(b, kOther);
  EXPECT_EQ(blocks.holder(0).load(std::memory_order_relaxed), Holder::gone(kOther).value);
}

TEST(WordPool, Put_EmptyWord_IsFoundAgain) {
  Blocks blocks(300, {{4096}});
  const Taken mine = blocks.give(299, 1, 64);
  Cursor cursor;
  while (blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits != 0) {
  }
  EXPECT_EQ(blocks.pool(1).put(mine.leaf, std::uint64_t{1} << 63), 0U);
  EXPECT_TRUE(blocks.check());
  Cursor fresh;
  EXPECT_EQ(blocks.pool(1).take(fresh, 64, kMe, kAnywhere).bits, std::uint64_t{1} << 63);
}

TEST(WordPool, Put_SlotIsFreeAlready_ReportsItAndChangesNothing) {
  Blocks blocks(1, {{64}});
  const Taken mine = blocks.give(0, 1, 4);
  EXPECT_EQ(blocks.pool(1).put(mine.leaf, 0b0001U), kAll << 4);
  EXPECT_NE(blocks.pool(1).put(mine.leaf, 0b0011U) & 0b0001U, 0U);
  EXPECT_EQ(blocks.word(mine.leaf).load(), kAll << 4 | 1U);
}

TEST(WordPool, TakeExactly_OneSlotMissing_TakesNothing) {
  Blocks blocks(1, {{64}});
  (void)blocks.give(0, 1, 1);
  EXPECT_FALSE(blocks.pool(1).take_exactly(0, 0b11U));
  EXPECT_EQ(blocks.word(0).load(), kAll << 1);
  EXPECT_TRUE(blocks.pool(1).take_exactly(0, 0b110U));
  EXPECT_EQ(blocks.word(0).load(), kAll << 3);
}

TEST(WordPool, Seize_WhollyFree_TakesEverySlot) {
  for (const std::uint32_t slots : {1U, 64U, 70U, 4096U}) {
    Blocks blocks(1, {{slots}});
    blocks.give(0, 1);
    EXPECT_TRUE(blocks.pool(1).looks_full(0));
    EXPECT_TRUE(blocks.pool(1).seize(0));
    EXPECT_EQ(blocks.pool(1).free_slots(0), 0U);
    Cursor cursor;
    EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, 0U);
  }
}

TEST(WordPool, Seize_OneSlotOut_FailsAndPutsAllBack) {
  for (const unsigned missing : {0U, 63U, 64U, 200U, 255U}) {
    Blocks blocks(1, {{256}});
    blocks.give(0, 1);
    ASSERT_TRUE(blocks.pool(1).take_exactly(leaf_of(0, missing / 64), base::bit(missing % 64)));
    EXPECT_FALSE(blocks.pool(1).looks_full(0));
    EXPECT_FALSE(blocks.pool(1).looks_full(0, missing / 64));
    EXPECT_FALSE(blocks.pool(1).seize(0));
    EXPECT_EQ(blocks.pool(1).free_slots(0), 255U);
    EXPECT_TRUE(blocks.check());
  }
}

TEST(WordPool, Seize_SearcherTakesAWordMeanwhile_FailsAndNothingIsLost) {
  Hooked blocks(1, {{256}});
  blocks.give(0, 1);
  Taken theirs;
  test::HookedAtomics::interrupt_before_change_of(&blocks.word(leaf_of(0, 2)), [&] {
    Cursor cursor = at(leaf_of(0, 3));
    theirs = blocks.pool(1).take(cursor, 10, kOther, kAnywhere);
  });
  EXPECT_FALSE(blocks.pool(1).seize(0));
  EXPECT_EQ(std::popcount(theirs.bits), 10);
  EXPECT_EQ(blocks.pool(1).free_slots(0), 246U);
  EXPECT_TRUE(blocks.check());
  EXPECT_EQ(blocks.pool(1).put(theirs.leaf, theirs.bits), kAll << 10);
  EXPECT_TRUE(blocks.pool(1).seize(0));
}

TEST(WordPool, Reuse_BlockGoesToAnotherPool_EachSeesItsOwnShape) {
  Blocks blocks(2, {{4096}, {10}});
  blocks.give(0, 1);
  ASSERT_TRUE(blocks.take_away(0));
  blocks.give(0, 2);
  Cursor one, two;
  EXPECT_EQ(blocks.pool(1).take(one, 64, kMe, kAnywhere).bits, 0U);
  EXPECT_EQ(blocks.pool(2).take(two, 64, kMe, kAnywhere).bits, base::low_bits(10));
  EXPECT_TRUE(blocks.check());
}

// A searcher of pool 1 stands before a word of a block that goes to pool 2 under its feet.
TEST(WordPool, Reuse_SearcherOfTheFormerPool_GivesBackWhatItTook) {
  Hooked blocks(1, {{64}, {64}});
  blocks.give(0, 1);
  test::HookedAtomics::interrupt_before_change_of(&blocks.word(0), [&] {
    ASSERT_TRUE(blocks.take_away(0));
    blocks.give(0, 2);
  });
  Cursor cursor;
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, 0U);
  EXPECT_EQ(blocks.gave_back.load(), 1U);
  EXPECT_EQ(blocks.pool(2).free_slots(0), 64U);
  EXPECT_TRUE(blocks.check());
}

// A put stands between its slots' release and their announcement; the block, wholly free by now, goes to another pool and
// is emptied there. The late announcement may not hide the block from its new pool.
TEST(WordPool, Reuse_LateAnnouncementToTheFormerPool_SlotsOfTheNewOneAreFound) {
  Hooked blocks(2, {{64}, {64}});
  const Taken mine = blocks.give(0, 1, 64);
  Taken theirs;
  test::HookedAtomics::interrupt_before_change_of(&blocks.summary(0), [&] {
    ASSERT_TRUE(blocks.take_away(0));
    blocks.give(0, 2);
    Cursor cursor;
    theirs = blocks.pool(2).take(cursor, 64, kOther, kAnywhere);
    ASSERT_EQ(theirs.bits, kAll);
    Cursor fresh = at(leaf_of(1, 0));
    ASSERT_EQ(blocks.pool(2).take(fresh, 64, kOther, kAnywhere).bits, 0U);  // clears the hints
  });
  EXPECT_EQ(blocks.pool(1).put(mine.leaf, mine.bits), 0U);
  EXPECT_EQ(blocks.pool(2).put(theirs.leaf, theirs.bits), 0U);
  EXPECT_TRUE(blocks.check());
  Cursor fresh = at(leaf_of(1, 0));
  EXPECT_EQ(blocks.pool(2).take(fresh, 64, kMe, kAnywhere).bits, kAll);
}

// The same with a claimer who keeps every slot: it publishes nothing, but the late bit is in the summary already.
TEST(WordPool, Reuse_AnnouncementBetweenTwoOwners_SlotsOfTheNewOneAreFound) {
  Hooked blocks(2, {{64}, {64}});
  const Taken mine = blocks.give(0, 1, 64);
  test::HookedAtomics::interrupt_before_change_of(&blocks.summary(0), [&] { ASSERT_TRUE(blocks.take_away(0)); });
  EXPECT_EQ(blocks.pool(1).put(mine.leaf, mine.bits), 0U);
  const Taken theirs = blocks.give(0, 2, 64);
  EXPECT_EQ(blocks.pool(2).put(theirs.leaf, theirs.bits), 0U);
  EXPECT_TRUE(blocks.check());
  Cursor fresh = at(leaf_of(1, 0));
  EXPECT_EQ(blocks.pool(2).take(fresh, 64, kMe, kAnywhere).bits, kAll);
}

// A put comes between the searcher's look at an empty word and its clearing of the summary bit.
TEST(WordPool, StaleSummary_PutDuringTheClearing_IsFound) {
  Hooked blocks(2, {{64}});
  const Taken mine = blocks.give(0, 1, 64);
  ASSERT_EQ(blocks.pool(1).put(mine.leaf, mine.bits), 0U);
  Cursor cursor;
  ASSERT_EQ(blocks.pool(1).take(cursor, 64, kMe, kAnywhere).bits, kAll);  // the summary bit is stale now
  test::HookedAtomics::interrupt_before_change_of(&blocks.summary(0),
                                                  [&] { (void)blocks.pool(1).put(mine.leaf, mine.bits); });
  Cursor searcher = at(leaf_of(1, 0));
  const Taken first = blocks.pool(1).take(searcher, 64, kOther, kAnywhere);
  Cursor fresh = at(leaf_of(1, 0));
  const Taken second = blocks.pool(1).take(fresh, 64, kMe, kAnywhere);
  EXPECT_EQ(first.bits | second.bits, kAll);
  EXPECT_TRUE(blocks.check());
}

// Block 0 lies in lane 1, but its holder's lane is 2: a searcher of lane 1 moves it. While it stands between the two steps
// of that, the holder's lane becomes 1 again, and a searcher of lane 2 moves the block back, where its bit still stands; and
// a third thread works in the block after that. It may not be lost between the lanes.
TEST(WordPool, Lanes_BlockIsMovedToAndFro_StaysFindable) {
  Hooked blocks(8, {{64}}, 4);
  blocks.holder(0).store(Holder::gone(1).value);
  blocks.give(0, 1);
  blocks.holder(0).store(Holder::gone(2).value);
  constexpr unsigned kPatience = 5;
  test::HookedAtomics::interrupt_before_change_of(&blocks.lane_word(1), [&] {
    blocks.holder(0).store(Holder::gone(1).value);
    Cursor cursor = at(leaf_of(7, 0));
    EXPECT_EQ(blocks.pool(1).take(cursor, 64, 2 + 4, kPatience).bits, 0U) << "others' block, and few of them";
    blocks.holder(0).store(Holder::gone(3).value);
  });
  Cursor cursor = at(leaf_of(7, 0));
  EXPECT_EQ(blocks.pool(1).take(cursor, 64, 1 + 4, kPatience).bits, 0U);
  EXPECT_TRUE(blocks.check());
  Cursor fresh = at(leaf_of(7, 0));
  EXPECT_EQ(blocks.pool(1).take(fresh, 64, kMe, kAnywhere).bits, kAll);
}

TEST(WordPool, Lanes_OwnBlocksFirst_ThenTheOthers) {
  Blocks blocks(100, {{64}}, 4);
  for (std::uint32_t b = 0; b < 20; ++b) {
    blocks.holder(b).store(Holder::gone(1 + b % 4).value);
    blocks.give(b, 1);
  }
  std::set<std::uint32_t> mine, all;
  Cursor cursor;
  for (int i = 0; i < 20; ++i) {
    const Taken t = blocks.pool(1).take(cursor, 64, 2, i < 5 ? 4 : kAnywhere);
    ASSERT_EQ(t.bits, kAll);
    all.insert(block_of(t.leaf));
    if (i < 5) mine.insert(block_of(t.leaf));
  }
  EXPECT_EQ(mine, (std::set<std::uint32_t>{1, 5, 9, 13, 17}));
  EXPECT_EQ(all.size(), 20U);
  EXPECT_TRUE(blocks.check());
}

// However patient: with so many free blocks of others, which the search does not even count to the end, memory does not
// grow any more.
TEST(WordPool, Take_VeryPatientAmongManyBlocksOfOthers_TakesOneOver) {
  for (const unsigned lanes : {1U, 8U})
    for (const unsigned patience : {8U, 16U, 64U, 1000U}) {
      Blocks blocks(200, {{64}}, lanes);
      for (std::uint32_t b = 0; b < 200; ++b) {
        blocks.holder(b).store(Holder::gone(1000 + b).value);
        blocks.give(b, 1);
      }
      Cursor cursor;
      EXPECT_NE(blocks.pool(1).take(cursor, 64, kMe, patience).bits, 0U) << lanes << " lanes, patience " << patience;
    }
}

TEST(WordPool, Take_AmongBlocksOfOthers_PrefersOneThatItsHolderLeft) {
  Blocks blocks(10, {{64}});
  for (std::uint32_t b = 0; b < 6; ++b) {
    blocks.holder(b).store((b == 3 ? Holder::gone(100 + b) : Holder::at_work(100 + b)).value);
    blocks.give(b, 1);
  }
  Cursor cursor = at(leaf_of(9, 0));
  EXPECT_EQ(block_of(blocks.pool(1).take(cursor, 64, kMe, 2).leaf), 3U);
}

// Random operations of one thread against a set of slots, the invariants after each.
TEST(WordPool, RandomTakesAndPuts_AgreeWithASet) {
  std::mt19937 random(20261121);
  constexpr std::uint32_t kBlocks = 70;  // two levels of summaries
  Blocks blocks(kBlocks, {{64}, {100}, {4096}}, 4);
  std::vector<std::vector<Taken>> held(4);
  std::vector<std::uint32_t> owner(kBlocks, 0);
  std::vector<std::uint32_t> out(kBlocks, 0);  // slots of the block in our hands
  Cursor cursors[4];
  for (int step = 0; step < 30000; ++step) {
    const unsigned tag = 1 + random() % 3;
    auto& pool = blocks.pool(tag);
    switch (random() % 6) {
      case 0: {  // a block changes hands
        const std::uint32_t b = random() % kBlocks;
        if (owner[b] != 0) {
          ASSERT_EQ(blocks.take_away(b), out[b] == 0) << b;
          if (out[b] != 0) break;
        }
        owner[b] = random() % 4;
        if (owner[b] == 0) break;
        const Taken t = blocks.give(b, owner[b], random() % 65);
        out[b] = static_cast<std::uint32_t>(std::popcount(t.bits));
        if (t.bits != 0) held[owner[b]].push_back(t);
        break;
      }
      case 1:
      case 2: {
        const Taken t = pool.take(cursors[tag], 1 + random() % 64, 1 + random() % 9, kAnywhere);
        if (t.bits == 0) {
          for (std::uint32_t b = 0; b < kBlocks; ++b)
            ASSERT_TRUE(owner[b] != tag || pool.free_slots(b) == 0) << "free slots were not found";
          break;
        }
        ASSERT_EQ(owner[block_of(t.leaf)], tag);
        for (const Taken& h : held[tag]) ASSERT_FALSE(h.leaf == t.leaf && (h.bits & t.bits) != 0) << "slot given twice";
        out[block_of(t.leaf)] += static_cast<std::uint32_t>(std::popcount(t.bits));
        held[tag].push_back(t);
        break;
      }
      default: {
        if (held[tag].empty()) break;
        std::swap(held[tag][random() % held[tag].size()], held[tag].back());
        Taken& t = held[tag].back();
        std::uint64_t bits = t.bits & (std::uint64_t{random()} << 32 | random());
        if (random() % 2 == 0) bits = t.bits;
        const std::uint64_t old = bits == 0 ? 0 : pool.put(t.leaf, bits);
        ASSERT_EQ(old & bits, 0U);
        out[block_of(t.leaf)] -= static_cast<std::uint32_t>(std::popcount(bits));
        t.bits &= ~bits;
        if (t.bits == 0) held[tag].pop_back();
      }
    }
    ASSERT_TRUE(step % 16 != 0 || blocks.check()) << step;
  }
  EXPECT_TRUE(blocks.check());
}

// Threads take, stamp, check and put; blocks go back and forth between two pools. At the end nothing is lost.
TEST(WordPool, ThreadsTakePutAndReuse_NoSlotTwiceNoneLost) {
  constexpr std::uint32_t kBlocks = 6;
  constexpr std::uint32_t kSlots[3] = {0, 64, 200};
  Blocks blocks(kBlocks, {{kSlots[1]}, {kSlots[2]}}, 2);
  std::vector<std::atomic<std::uint8_t>> stamps(kBlocks * 4096);
  for (std::uint32_t b = 0; b < kBlocks; ++b) blocks.give(b, 1 + b % 2);
  std::atomic<bool> wrong{false};
  std::atomic<std::uint64_t> moves{0};
  const auto stamp = [&](const Taken& t, std::uint8_t from, std::uint8_t to) {
    for (std::uint64_t bits = t.bits; bits != 0; bits &= bits - 1)
      if (stamps[std::size_t{t.leaf} * 64 + base::lowest_bit(bits)].exchange(to) != from) wrong = true;
  };
  const auto work = [&](std::uint8_t me) {
    std::mt19937 random(me);
    std::vector<std::pair<unsigned, Taken>> held;
    Cursor cursors[3];
    for (int i = 0; i < 20000; ++i) {
      const unsigned tag = 1 + random() % 2;
      if (random() % 2 == 0) {
        const Taken t = blocks.pool(tag).take(cursors[tag], 1 + random() % 64, me, random() % 3);
        if (t.bits == 0) continue;
        stamp(t, 0, me);
        held.emplace_back(tag, t);
      } else if (!held.empty()) {
        const auto [from, t] = held.back();
        held.pop_back();
        stamp(t, me, 0);
        if ((blocks.pool(from).put(t.leaf, t.bits) & t.bits) != 0) wrong = true;
      }
    }
    for (const auto& [from, t] : held) {
      stamp(t, me, 0);
      if ((blocks.pool(from).put(t.leaf, t.bits) & t.bits) != 0) wrong = true;
    }
  };
  std::atomic<bool> stop{false};
  std::thread mover([&] {  // alone, as the arena under its lock
    std::mt19937 random(99);
    while (!stop) {
      const std::uint32_t b = random() % kBlocks;
      if (!blocks.take_away(b)) continue;
      blocks.give(b, 1 + random() % 2);
      ++moves;
    }
  });
  std::vector<std::thread> threads;
  for (std::uint8_t me = 1; me <= 4; ++me) threads.emplace_back(work, me);
  for (auto& t : threads) t.join();
  stop = true;
  mover.join();
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(blocks.check());
  for (std::uint32_t b = 0; b < kBlocks; ++b) EXPECT_TRUE(blocks.take_away(b)) << "slots of block " << b << " are lost";
  RecordProperty("moves", static_cast<int>(moves.load()));
}

}  // namespace
}  // namespace freehold::pool
