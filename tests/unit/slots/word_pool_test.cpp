// SPDX-License-Identifier: MIT
#include "freehold/slots/word_pool.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/slots/slots_support.hpp"

namespace freehold::pool {
namespace {

using Storage = test::TestSpans<sync::NativeAtomics>;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::uint32_t kMe = 1, kOther = 2;  // names of threads
constexpr unsigned kAnywhere = 0;             // take what there is, whoever used it

Cursor at(WordIndex index) { return Cursor{index, Cursor::kNoSpan}; }

// The thread's own stripe knows of another span only: the one that it works in still stands where its former user's are.
TEST(WordPool, Take_CursorInASpanOfAnotherStripe_TheWordsBelowComeBeforeOtherSpans) {
  Storage spans(2, {{128}}, 2);
  spans.last_user(0).store(LastUser::inactive(kOther).value);
  spans.give(0, 1);
  spans.last_user(1).store(LastUser::inactive(kMe).value);
  spans.give(1, 1);
  Cursor cursor = at(word_index(0, 1));
  EXPECT_EQ(spans.take(1, cursor, 64, kMe, kAnywhere).word, word_index(0, 1));
  EXPECT_EQ(spans.take(1, cursor, 64, kMe, kAnywhere).word, word_index(0, 0));
}

TEST(WordPool, Take_AnothersSpan_IsPassedOverUpToTheLimit) {
  Storage spans(4, {{64}});
  for (std::uint32_t b = 0; b < 3; ++b) spans.give(b, 1);
  Cursor other;
  EXPECT_EQ(span_of(spans.take(1, other, 1, kOther, 2).word), 0U);
  EXPECT_EQ(other.active_span, 0U);
  Cursor mine;  // stands in span 0, too
  EXPECT_EQ(span_of(spans.take(1, mine, 1, kMe, 2).word), 1U);
  EXPECT_EQ(mine.active_span, 1U);
  EXPECT_EQ(span_of(spans.take(1, mine, 1, kMe, 2).word), 1U) << "stays at home";
}

TEST(WordPool, Take_AllSpansInUse_NothingUpToTheLimit_SharedBeyond) {
  Storage spans(2, {{64}});
  spans.give(0, 1);
  spans.give(1, 1);
  Cursor a, b, mine;
  (void)spans.take(1, a, 1, 7, 9);
  (void)spans.take(1, b, 1, 8, 9);
  EXPECT_EQ(spans.take(1, mine, 1, kMe, 9).bits, 0U);
  EXPECT_NE(spans.take(1, mine, 1, kMe, 1).bits, 0U) << "more of them than the caller puts up with";
  spans.pool(1).clear_active(mine, kMe);
  EXPECT_NE(spans.take(1, mine, 1, kMe, kAnywhere).bits, 0U);
}

// Slots that a thread gives back move its cursor: the next take is from there.
TEST(WordPool, Take_CursorWentToAnotherSpan_TheFormerIsNotActiveAnyMore) {
  Storage spans(2, {{64}});
  spans.give(0, 1);
  spans.give(1, 1);
  Cursor cursor;
  ASSERT_EQ(span_of(spans.take(1, cursor, 1, kMe, 9).word), 0U);
  cursor.word = word_index(1, 0);
  ASSERT_EQ(span_of(spans.take(1, cursor, 1, kMe, 9).word), 1U);
  EXPECT_EQ(spans.last_user(0).load(), LastUser::inactive(kMe).value);
  EXPECT_EQ(spans.last_user(1).load(), LastUser::active(kMe).value);
}

TEST(WordPool, Stripes_OwnSpansFirst_ThenTheOthers) {
  Storage spans(100, {{64}}, 4);
  for (std::uint32_t b = 0; b < 20; ++b) {
    spans.last_user(b).store(LastUser::inactive(1 + b % 4).value);
    spans.give(b, 1);
  }
  std::set<std::uint32_t> mine, all;
  Cursor cursor;
  for (int i = 0; i < 20; ++i) {
    const Taken t = spans.take(1, cursor, 64, 2, i < 5 ? 4 : kAnywhere);
    ASSERT_EQ(t.bits, kAll);
    all.insert(span_of(t.word));
    if (i < 5) mine.insert(span_of(t.word));
  }
  EXPECT_EQ(mine, (std::set<std::uint32_t>{1, 5, 9, 13, 17}));
  EXPECT_EQ(all.size(), 20U);
  EXPECT_TRUE(spans.check());
}

// Whatever limit: with so many free spans of others, which the search does not even count to the end, memory does not
// grow any more.
TEST(WordPool, Take_HighLimitAmongManySpansOfOthers_TakesOneOver) {
  for (const unsigned stripes : {1U, 8U})
    for (const unsigned max_foreign_spans : {8U, 16U, 64U, 1000U}) {
      Storage spans(200, {{64}}, stripes);
      for (std::uint32_t b = 0; b < 200; ++b) {
        spans.last_user(b).store(LastUser::inactive(1000 + b).value);
        spans.give(b, 1);
      }
      Cursor cursor;
      EXPECT_NE(spans.take(1, cursor, 64, kMe, max_foreign_spans).bits, 0U)
          << stripes << " stripes, max_foreign_spans " << max_foreign_spans;
    }
}

// A search looks into some of many stripes: others each time, so that the slots of any are found in the end.
TEST(WordPool, Take_OneSpanAmongManyStripes_FoundAfterSomeNewSpans) {
  constexpr std::uint32_t kNewSpans = 150;
  for (std::uint32_t stripe = 0; stripe < 64; ++stripe) {
    Storage spans(kNewSpans + 1, {{64}}, 64);
    spans.last_user(kNewSpans).store(LastUser::inactive(64 + stripe).value);
    spans.give(kNewSpans, 1);
    Cursor cursor;
    std::uint32_t claimed = 0;
    while (spans.take(1, cursor, 64, kMe, 1).bits == 0 && claimed < kNewSpans) {
      spans.give(claimed, 1);
      cursor.word = word_index(claimed, 0);
      spans.last_user(claimed).store(LastUser::active(kMe).value);
      EXPECT_NE(spans.take(1, cursor, 64, kMe, 1).bits, 0U);
      ++claimed;
    }
    EXPECT_LT(claimed, kNewSpans) << "stripe " << stripe;
  }
}

// Random operations of one thread against a set of slots, the invariants after each.
TEST(WordPool, RandomTakesAndPuts_AgreeWithASet) {
  std::mt19937 random(20261121);
  constexpr std::uint32_t kSpans = 70;  // two levels of summaries
  Storage spans(kSpans, {{64}, {100}, {4096}}, 4);
  std::vector<std::vector<Taken>> held(4);
  std::vector<std::uint32_t> owner(kSpans, 0);
  std::vector<std::uint32_t> out(kSpans, 0);  // slots of the span in our hands
  Cursor cursors[4];
  for (int step = 0; step < 30000; ++step) {
    const unsigned tag = 1 + random() % 3;
    auto& pool = spans.pool(tag);
    switch (random() % 6) {
      case 0: {  // a span changes hands
        const std::uint32_t b = random() % kSpans;
        if (owner[b] != 0) {
          ASSERT_EQ(spans.take_away(b), out[b] == 0) << b;
          if (out[b] != 0) break;
        }
        owner[b] = random() % 4;
        if (owner[b] == 0) break;
        const Taken t = spans.give(b, owner[b], random() % 65);
        out[b] = static_cast<std::uint32_t>(std::popcount(t.bits));
        if (t.bits != 0) held[owner[b]].push_back(t);
        break;
      }
      case 1:
      case 2: {
        const Taken t = spans.take(tag, cursors[tag], 1 + random() % 64, 1 + random() % 9, kAnywhere);
        if (t.bits == 0) {
          for (std::uint32_t b = 0; b < kSpans; ++b)
            ASSERT_TRUE(owner[b] != tag || pool.free_slots(b) == 0) << "free slots were not found";
          break;
        }
        ASSERT_EQ(owner[span_of(t.word)], tag);
        for (const Taken& h : held[tag]) ASSERT_FALSE(h.word == t.word && (h.bits & t.bits) != 0) << "slot given twice";
        out[span_of(t.word)] += static_cast<std::uint32_t>(std::popcount(t.bits));
        held[tag].push_back(t);
        break;
      }
      default: {
        if (held[tag].empty()) break;
        std::swap(held[tag][random() % held[tag].size()], held[tag].back());
        Taken& t = held[tag].back();
        std::uint64_t bits = t.bits & (std::uint64_t{random()} << 32 | random());
        if (random() % 2 == 0) bits = t.bits;
        const std::uint64_t old = bits == 0 ? 0 : pool.put(t.word, bits);
        ASSERT_EQ(old & bits, 0U);
        out[span_of(t.word)] -= static_cast<std::uint32_t>(std::popcount(bits));
        t.bits &= ~bits;
        if (t.bits == 0) held[tag].pop_back();
      }
    }
    ASSERT_TRUE(step % 16 != 0 || spans.check()) << step;
  }
  EXPECT_TRUE(spans.check());
}

// Threads take, stamp, check and put; spans go back and forth between two pools. At the end nothing is lost.
TEST(WordPool, ThreadsTakePutAndReuse_NoSlotTwiceNoneLost) {
  constexpr std::uint32_t kSpans = 6;
  constexpr std::uint32_t kSlots[3] = {0, 64, 200};
  Storage spans(kSpans, {{kSlots[1]}, {kSlots[2]}}, 2);
  std::vector<std::atomic<std::uint8_t>> stamps(kSpans * 4096);
  for (std::uint32_t b = 0; b < kSpans; ++b) spans.give(b, 1 + b % 2);
  std::atomic<bool> wrong{false};
  std::atomic<std::uint64_t> moves{0};
  const auto stamp = [&](const Taken& t, std::uint8_t from, std::uint8_t to) {
    for (std::uint64_t bits = t.bits; bits != 0; bits &= bits - 1)
      if (stamps[std::size_t{t.word} * 64 + base::lowest_bit(bits)].exchange(to) != from) wrong = true;
  };
  const auto work = [&](std::uint8_t me) {
    std::mt19937 random(me);
    std::vector<std::pair<unsigned, Taken>> held;
    Cursor cursors[3];
    for (int i = 0; i < 20000; ++i) {
      const unsigned tag = 1 + random() % 2;
      if (random() % 2 == 0) {
        const Taken t = spans.take(tag, cursors[tag], 1 + random() % 64, me, random() % 3);
        if (t.bits == 0) continue;
        stamp(t, 0, me);
        held.emplace_back(tag, t);
      } else if (!held.empty()) {
        const auto [from, t] = held.back();
        held.pop_back();
        stamp(t, me, 0);
        if ((spans.pool(from).put(t.word, t.bits) & t.bits) != 0) wrong = true;
      }
    }
    for (const auto& [from, t] : held) {
      stamp(t, me, 0);
      if ((spans.pool(from).put(t.word, t.bits) & t.bits) != 0) wrong = true;
    }
  };
  std::atomic<bool> stop{false};
  std::thread mover([&] {  // alone, as the arena under its lock
    std::mt19937 random(99);
    while (!stop) {
      const std::uint32_t b = random() % kSpans;
      if (!spans.take_away(b)) continue;
      spans.give(b, 1 + random() % 2);
      ++moves;
    }
  });
  std::vector<std::thread> threads;
  for (std::uint8_t me = 1; me <= 4; ++me) threads.emplace_back(work, me);
  for (auto& t : threads) t.join();
  stop = true;
  mover.join();
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(spans.check());
  for (std::uint32_t b = 0; b < kSpans; ++b) EXPECT_TRUE(spans.take_away(b)) << "slots of span " << b << " are lost";
  RecordProperty("moves", static_cast<int>(moves.load()));
}

}  // namespace
}  // namespace freehold::pool
