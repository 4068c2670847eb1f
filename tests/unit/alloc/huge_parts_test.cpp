// SPDX-License-Identifier: MIT
// HugeParts without an arena: chunks in an array, at addresses where nothing is.
#include "freehold/alloc/return/arena_huge.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "tests/unit/alloc/support.hpp"

namespace freehold::alloc {
namespace {

using A = sync::NativeAtomics;
using Config = NativeConfig;
using Parts = HugeParts<A, Config, test::FakePages>;
using Units = ArenaUnits<Config>;

class HugePartsTest : public ::testing::Test {
 protected:
  static constexpr unsigned kChunks = 3;

  HugePartsTest() {
    range_.start_at(std::uintptr_t{1} << 40);
    range_.grow_to(kChunks * Units::kChunkSpans);
    chunks_.attach(records_, trees_, kChunks);
    parts_.init(pages_, HugePages::kAuto);
    for (unsigned c = 0; c < kChunks; ++c) chunks_.add(c, ChunkKind::kSlots, {});
    budget_.slots_taken(kChunks * Config::kHugeAfterBytes);
    for (unsigned c = 0; c < kChunks; ++c) parts_.advise_spans(c, 0, Units::kChunkSpans, ChunkKind::kSlots, c);
  }
  [[nodiscard]] unsigned huge(unsigned chunk) const { return chunks_.chunk(chunk).huge.load(); }
  // The pages of a span of a huge page go back; then all are back, and a span of it is used.
  void split(SpanIndex i) { parts_.split_huge_pages(range_.address(i), Units::kSpanBytes); }
  void use_anew(SpanIndex i) {
    const TakenSpans t = chunks_.take_exactly(i, 1);
    parts_.ask_for_huge_page({t.first, 0, 1});
    chunks_.give(i, 1, false, 0);
  }

  test::FakePages pages_;
  SpanRange<A, Config> range_;
  Parts::Chunks chunks_;
  Budget<A, Config> budget_;
  // Chunks of runs, a CPU's each, of which so much is in use; looks found their pages written (w), or not.
  void fill_runs(std::string_view looks, std::int64_t bytes) {
    for (unsigned c = 0; c < kChunks; ++c) {
      records_[c].huge = 0;
      records_[c].kind = ChunkKind::kRuns;
      records_[c].user = Searcher{.cpu = c}.as_user();
    }
    for (const char look : looks) parts_.note_look(look == 'w');
    budget_.slots_taken(bytes - budget_.in_use());
    parts_.advise_spans(2, 0, Units::kChunkSpans, ChunkKind::kRuns, 2);
  }

  Chunk<A> records_[kChunks];
  Parts::Chunks::Word trees_[Parts::Chunks::kTrees * 2]{};
  Parts parts_{range_, chunks_, budget_};
};

TEST_F(HugePartsTest, ManySpans_FewSlotsInUse_NoHugePage) {
  budget_.slots_taken(-static_cast<std::int64_t>(kChunks * Config::kHugeAfterBytes));
  budget_.class_spans(kChunks * Units::kChunkBytes);
  records_[1].huge = 0;
  parts_.advise_spans(1, 0, Units::kChunkSpans, ChunkKind::kSlots, 1);
  EXPECT_EQ(huge(1), 0U);
  use_anew(Units::kChunkSpans);
  EXPECT_EQ(huge(1), 0U);
}

TEST_F(HugePartsTest, Split_OnePart_ForbiddenUntilItIsUsedAnew) {
  ASSERT_EQ(huge(1), 3U);
  pages_.forget_log();
  const SpanIndex first = Units::kChunkSpans;
  split(first + 1);
  EXPECT_EQ(huge(1), 2U);
  split(first + 2);
  ASSERT_EQ(pages_.huge_advice().size(), 1U) << "it is forbidden already";
  EXPECT_EQ(pages_.huge_advice()[0].address, range_.address(first));
  EXPECT_EQ(pages_.huge_advice()[0].bytes, Parts::kHugeBytes);
  EXPECT_FALSE(pages_.huge_advice()[0].wanted);
  use_anew(first);
  EXPECT_EQ(huge(1), 3U);
}

TEST_F(HugePartsTest, Split_WholeHugePage_StaysHuge) {
  parts_.split_huge_pages(range_.address(0), Parts::kHugeBytes);
  EXPECT_EQ(huge(0), 3U);
}

TEST_F(HugePartsTest, Split_ManyTimes_AllSpansAreOneMappingAgain) {
  for (int i = 0; i < 256; ++i) {
    split(1);
    use_anew(0);
  }
  ASSERT_EQ(huge(2), 3U);
  split(1);
  for (unsigned c = 0; c < kChunks; ++c) EXPECT_EQ(huge(c), 0U);
  EXPECT_EQ(pages_.huge_advice().back().bytes, kChunks * Units::kChunkBytes);
  EXPECT_FALSE(pages_.huge_advice().back().wanted);
}

constexpr const char* kWritten = "-wwww";
constexpr std::int64_t kMuch = 2 * std::int64_t{32} << 20;  // on two CPUs

TEST_F(HugePartsTest, Runs_AreWrittenAndMuchIsInUse_Huge) {
  fill_runs(kWritten, kMuch);
  EXPECT_EQ(huge(2), 3U);
  EXPECT_TRUE(pages_.huge_advice().back().wanted);
}

TEST_F(HugePartsTest, Runs_LittleIsInUseForTwoCpus_NotAsked) {
  fill_runs(kWritten, kMuch - 1);
  EXPECT_EQ(huge(2), 0U);
}

TEST_F(HugePartsTest, Runs_PagesAreUntouched_NotAsked) {
  for (const char* looks : {"", "www", "wwwwwwwww---", "ww-ww-ww-ww-"}) {
    fill_runs(looks, 10 * kMuch);
    EXPECT_EQ(huge(2), 0U) << looks;
    fill_runs("----", kMuch - 1);
  }
}

// A chunk of runs that asks loses one huge page; the system's default under the others ends with the first split there.
TEST_F(HugePartsTest, Runs_SplitWhereHuge_ThereOnly) {
  fill_runs(kWritten, kMuch);
  pages_.forget_log();
  split(2 * Units::kChunkSpans);
  EXPECT_EQ(huge(2), 2U);
  EXPECT_EQ(pages_.huge_advice().back().bytes, Parts::kHugeBytes);
  split(0);
  EXPECT_EQ(huge(2), 2U);
  EXPECT_EQ(pages_.huge_advice().back().bytes, 2 * Units::kChunkBytes);
}

}  // namespace
}  // namespace freehold::alloc
