#include "freehold/alloc/run_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {
namespace {

using TestSpan = Span<sync::NativeAtomics, 1>;

// A table over spans [1, spans], all of them free and clean at first. Span 0 and the last one are the arena's margin.
class Table {
 public:
  explicit Table(SpanIndex count) : count_(count), spans_(std::make_unique<TestSpan[]>(count + 2)) {
    table.attach(spans_.get());
    table.free(1, count, false, 0);
  }
  [[nodiscard]] bool check() const { return table.check_invariants(1, count_ + 1); }
  TestSpan& operator[](SpanIndex i) { return spans_[i]; }

  RunTable<TestSpan> table;

 private:
  SpanIndex count_;
  std::unique_ptr<TestSpan[]> spans_;
};

TEST(RunTable, Allocate_ExactFit_LeavesNothing) {
  Table t(10);
  const RunPlace place = t.table.allocate(10, 1, 0);
  EXPECT_EQ(place.first, 1U);
  EXPECT_TRUE(place.zero);
  EXPECT_EQ(t.table.clean_spans(), 0U);
  EXPECT_EQ(t.table.allocate(1, 1, 0).first, kNoSpan);
  EXPECT_TRUE(t.check());
}

TEST(RunTable, Allocate_OneTooMany_None) {
  Table t(10);
  EXPECT_EQ(t.table.allocate(11, 1, 0).first, kNoSpan);
  EXPECT_EQ(t.table.clean_spans(), 10U);
}

TEST(RunTable, Allocate_DirtyRunsFirst_SinceTheyAreWarm) {
  Table t(100);
  const SpanIndex a = t.table.allocate(5, 1, 0).first, b = t.table.allocate(5, 1, 0).first;
  t.table.free(b, 5, true, 7);
  const RunPlace place = t.table.allocate(3, 1, 0);
  EXPECT_EQ(place.first, b);
  EXPECT_FALSE(place.zero);
  EXPECT_NE(place.first, a);
  EXPECT_TRUE(t.check());
}

TEST(RunTable, Allocate_BestFitByLists_SmallRunsBeforeLargeOnes) {
  Table t(1000);
  SpanIndex first[6];
  const SpanIndex lengths[] = {20, 1, 4, 1, 9, 1};
  for (int i = 0; i < 6; ++i) first[i] = t.table.allocate(lengths[i], 1, 0).first;
  for (const int i : {0, 2, 4}) t.table.free(first[i], lengths[i], true, 0);
  EXPECT_EQ(t.table.allocate(3, 1, 0).first, first[2]);
  EXPECT_EQ(t.table.allocate(8, 1, 0).first, first[4]);
  EXPECT_EQ(t.table.allocate(8, 1, 0).first, first[0]);
  EXPECT_TRUE(t.check());
}

TEST(RunTable, Allocate_EveryAlignmentAndPhase_HoldsAndTheLeadStaysFree) {
  for (SpanIndex alignment = 1; alignment <= 32; alignment *= 2)
    for (SpanIndex phase = 0; phase < 32; ++phase) {
      Table t(200);
      const SpanIndex one = t.table.allocate(1, 1, 0).first;
      const RunPlace place = t.table.allocate(3, alignment, phase);
      ASSERT_NE(place.first, kNoSpan);
      EXPECT_EQ((place.first + phase) % alignment, 0U);
      EXPECT_EQ(t.table.clean_spans(), 196U);
      EXPECT_TRUE(t.check());
      t.table.free(place.first, 3, false, 0);
      t.table.free(one, 1, false, 0);
      EXPECT_EQ(t.table.allocate(200, 1, 0).first, 1U) << "merged whole again";
    }
}

TEST(RunTable, Free_BothNeighboursFree_MergesAll) {
  Table t(30);
  SpanIndex first[3];
  for (auto& f : first) f = t.table.allocate(10, 1, 0).first;
  t.table.free(first[0], 10, true, 1);
  t.table.free(first[2], 10, true, 2);
  t.table.free(first[1], 10, true, 3);
  EXPECT_TRUE(t.check());
  EXPECT_EQ(t.table.allocate(30, 1, 0).first, 1U);
}

TEST(RunTable, Free_NeighbourOfOtherKind_IsNotMerged) {
  Table t(20);
  const SpanIndex a = t.table.allocate(10, 1, 0).first, b = t.table.allocate(10, 1, 0).first;
  t.table.free(a, 10, false, 0);
  t.table.free(b, 10, true, 0);
  EXPECT_TRUE(t.check());
  EXPECT_EQ(t.table.clean_spans(), 10U);
  EXPECT_EQ(t.table.dirty_spans(), 10U);
  EXPECT_EQ(t.table.allocate(20, 1, 0).first, kNoSpan);
}

TEST(RunTable, Extend_FreeRunBehind_TakesItsFront) {
  Table t(20);
  const SpanIndex a = t.table.allocate(4, 1, 0).first;
  bool zero = false;
  EXPECT_FALSE(t.table.extend(a, 17, zero));
  EXPECT_TRUE(t.table.extend(a, 6, zero));
  EXPECT_TRUE(zero);
  EXPECT_EQ(t[a].length, 10U);
  EXPECT_TRUE(t.check());
  EXPECT_TRUE(t.table.extend(a, 10, zero)) << "all of it";
  EXPECT_EQ(t.table.clean_spans(), 0U);
  EXPECT_TRUE(t.check());
}

TEST(RunTable, Extend_UsedRunBehind_Fails) {
  Table t(20);
  const SpanIndex a = t.table.allocate(4, 1, 0).first;
  (void)t.table.allocate(4, 1, 0);
  bool zero = false;
  EXPECT_FALSE(t.table.extend(a, 1, zero));
  EXPECT_EQ(t[a].length, 4U);
}

TEST(RunTable, OldestDirty_OnlyThoseBeforeTheTime) {
  Table t(50);
  const SpanIndex a = t.table.allocate(5, 1, 0).first;
  (void)t.table.allocate(1, 1, 0);
  const SpanIndex b = t.table.allocate(9, 1, 0).first;
  (void)t.table.allocate(1, 1, 0);
  t.table.free(a, 5, true, 100);
  t.table.free(b, 9, true, 200);
  EXPECT_EQ(t.table.oldest_dirty(99), kNoSpan);
  EXPECT_EQ(t.table.oldest_dirty(100), a);
  EXPECT_EQ(t.table.oldest_dirty(200), b) << "the larger first";
  EXPECT_EQ(t.table.remove(b), 9U);
  EXPECT_EQ(t.table.oldest_dirty(200), a);
}

// A merged run is as young as its youngest part: what was just freed may be wanted again at once.
TEST(RunTable, Free_MergedWithAnOlderRun_CountsAsNew) {
  Table t(20);
  const SpanIndex a = t.table.allocate(5, 1, 0).first, b = t.table.allocate(5, 1, 0).first;
  (void)t.table.allocate(10, 1, 0);
  t.table.free(a, 5, true, 100);
  t.table.free(b, 5, true, 200);
  EXPECT_EQ(t.table.oldest_dirty(199), kNoSpan);
  EXPECT_EQ(t.table.oldest_dirty(200), a);
}

// Every operation at random against one byte a span: used by which run, free and dirty, free and clean.
TEST(RunTable, RandomOperations_AgreeWithAMap) {
  for (const SpanIndex count : {40U, 300U, 2000U}) {
    std::mt19937 random(count);
    Table t(count);
    enum : int { kClean = -1, kDirty = -2 };
    std::vector<int> map(count + 2, kClean);
    struct Run {
      SpanIndex first, length;
      int name;
    };
    std::vector<Run> used;
    int names = 0;
    const auto fill = [&](SpanIndex first, SpanIndex length, int value) {
      std::fill(map.begin() + first, map.begin() + first + length, value);
    };
    // The longest stretch of equally free spans.
    const auto longest = [&] {
      SpanIndex best = 0, now = 0;
      for (SpanIndex i = 1; i <= count; ++i) {
        now = map[i] >= 0 ? 0 : (map[i] == map[i - 1] || now == 0 ? now + 1 : 1);
        best = std::max(best, now);
      }
      return best;
    };
    for (int step = 0; step < 6000; ++step) {
      switch (random() % 6) {
        case 0:
        case 1: {
          const SpanIndex length = 1 + random() % (random() % 4 == 0 ? count : 20);
          const SpanIndex alignment = SpanIndex{1} << random() % 4;
          const RunPlace place = t.table.allocate(length, alignment, 5);
          if (place.first == kNoSpan) {
            ASSERT_LT(longest(), length + alignment - 1) << "there was room";
            break;
          }
          ASSERT_EQ((place.first + 5) % alignment, 0U);
          for (SpanIndex i = place.first; i < place.first + length; ++i)
            ASSERT_EQ(map[i], place.zero ? kClean : kDirty) << "given twice, or called zero when dirty";
          fill(place.first, length, names);
          used.push_back({place.first, length, names++});
          break;
        }
        case 2:
        case 3:
          if (!used.empty()) {
            std::swap(used[random() % used.size()], used.back());
            const bool dirty = random() % 4 != 0;
            t.table.free(used.back().first, used.back().length, dirty, static_cast<std::uint64_t>(step));
            fill(used.back().first, used.back().length, dirty ? kDirty : kClean);
            used.pop_back();
          }
          break;
        case 4:
          if (!used.empty()) {
            Run& run = used[random() % used.size()];
            const SpanIndex more = 1 + random() % 8;
            bool zero = false;
            const SpanIndex after = run.first + run.length;
            bool room = after + more <= count + 1 && map[after] < 0;
            for (SpanIndex i = after; room && i < after + more; ++i) room = map[i] == map[after];
            ASSERT_EQ(t.table.extend(run.first, more, zero), room);
            if (!room) break;
            ASSERT_EQ(zero, map[after] == kClean);
            fill(after, more, run.name);
            run.length += more;
          }
          break;
        default:
          if (const SpanIndex first = t.table.oldest_dirty(static_cast<std::uint64_t>(random() % 6000)); first != kNoSpan) {
            const SpanIndex length = t.table.remove(first);
            for (SpanIndex i = first; i < first + length; ++i) ASSERT_EQ(map[i], kDirty);
            t.table.free(first, length, false, 0);
            fill(first, length, kClean);
          }
      }
      ASSERT_TRUE(t.check()) << step;
      ASSERT_EQ(t.table.dirty_spans(), static_cast<std::uint64_t>(std::count(map.begin() + 1, map.end() - 1, kDirty)));
      ASSERT_EQ(t.table.clean_spans(), static_cast<std::uint64_t>(std::count(map.begin() + 1, map.end() - 1, kClean)));
    }
  }
}

}  // namespace
}  // namespace freehold::alloc
