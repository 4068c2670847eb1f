// SPDX-License-Identifier: MIT
#include "freehold/slots/word_pool.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/slots/slots_support.hpp"

namespace freehold::pool {
namespace {

using Storage = test::TestSpans<sync::NativeAtomics>;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::uint32_t kMe = 1, kOther = 2;  // names of threads
constexpr unsigned kAnywhere = 0;             // take what there is, whoever used it

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

// The last bits of a thread's id name its node.
TEST(WordPool, Stripes_OfTheOwnNodeFirst_OthersWhereAnySpanIsWanted) {
  for (const unsigned stripes : {4U, 8U, 64U})
    for (const unsigned nodes : {2U, 4U}) {
      Storage spans(stripes, {{64}}, stripes, nodes);
      for (std::uint32_t b = 0; b < stripes; ++b) {
        spans.last_user(b).store(LastUser::inactive(64 + b).value);
        spans.give(b, 1);
      }
      std::set<std::uint32_t> found;
      Cursor cursor;
      for (unsigned i = 0; i < stripes; ++i) {
        const Taken t = spans.take(1, cursor, 64, 66, i < std::min(stripes / nodes, 8U) ? 1 : kAnywhere);
        ASSERT_EQ(t.bits, kAll);
        EXPECT_EQ((span_of(t.word) - 66) % nodes == 0, i < stripes / nodes) << i << " of " << stripes << ", " << nodes;
        found.insert(span_of(t.word));
      }
      EXPECT_EQ(found.size(), stripes);
    }
}

// With so many free spans of others, which the search does not even count to the end, memory does not grow, whatever the
// limit.
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

}  // namespace
}  // namespace freehold::pool
