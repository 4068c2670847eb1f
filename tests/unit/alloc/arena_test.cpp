#include "freehold/alloc/arena.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/alloc/support.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::alloc {
namespace {

using test::FakePages;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using Classes = SizeClasses;
using pool::Taken;

template <class A>
class TestArena {
 public:
  using Type = Arena<A, SmallConfig, FakePages>;

  explicit TestArena(const ArenaSettings& settings = small_settings()) : arena_(std::make_unique<Type>()) {
    ready_ = arena_->init(pages, settings);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  Type& operator*() { return *arena_; }
  Type* operator->() { return arena_.get(); }

  [[nodiscard]] char* slot(unsigned c, pool::Leaf leaf, unsigned bit) {
    return reinterpret_cast<char*>(arena_->geometry(c).address(leaf, bit));
  }
  // Every slot of a new span of class c.
  [[nodiscard]] std::vector<Taken> claim_whole(unsigned c) {
    std::vector<Taken> all;
    const Taken first = arena_->claim(c, 64, 1, now);
    if (first.bits == 0) return all;
    all.push_back(first);
    for (unsigned w = 0; w < arena_->pool(c).shape().words(); ++w) {
      const pool::Leaf leaf = pool::leaf_of(pool::block_of(first.leaf), w);
      const std::uint64_t bits = arena_->word_address(leaf)->load(std::memory_order_relaxed);
      if (bits == 0) continue;
      EXPECT_TRUE(arena_->pool(c).take_exactly(leaf, bits));
      arena_->note_taken(leaf);
      all.push_back({leaf, bits});
    }
    return all;
  }
  void put(unsigned c, const Taken& t) {
    const std::uint64_t old = arena_->pool(c).put(t.leaf, t.bits);
    EXPECT_EQ(old & t.bits, 0U);
    if ((old | t.bits) == arena_->pool(c).shape().full(pool::word_of(t.leaf))) arena_->note_full(c, t.leaf);
  }
  void put(unsigned c, const std::vector<Taken>& all) {
    for (const Taken& t : all) put(c, t);
  }
  [[nodiscard]] RunPlace run(SpanIndex length, SpanIndex alignment = 1) {
    const sync::Guard guard(arena_->lock());
    return arena_->allocate_run(length, alignment, now);
  }
  void free_run(SpanIndex first) {
    const sync::Guard guard(arena_->lock());
    arena_->free_run(first, now);
  }
  [[nodiscard]] char* memory(SpanIndex i) { return reinterpret_cast<char*>(arena_->address(i)); }
  [[nodiscard]] bool check() { return arena_->check_invariants(); }

  FakePages pages;
  std::uint64_t now = 1'000'000;

 private:
  std::unique_ptr<Type> arena_;
  bool ready_ = false;
};

using Native = TestArena<sync::NativeAtomics>;
using Hooked = TestArena<test::HookedAtomics>;

constexpr unsigned kSmall = Classes::class_of(64);      // dense
constexpr unsigned kOneWord = Classes::class_of(1024);  // dense, 64 slots: one word a span
constexpr unsigned kBig = Classes::class_of(4096);      // in the run half, 16 slots

// ---- start ------------------------------------------------------------------------------------------------------------

TEST(Arena, Init_AnyCallRefused_FalseAndNothingStays) {
  for (const bool in_steps : {false, true})
    for (std::uint64_t k = 1;; ++k) {
      FakePages pages;
      auto arena = std::make_unique<Native::Type>();
      pages.fail(k, FakePages::kNever);
      const bool ready = arena->init(pages, small_settings(std::size_t{16} << 20, in_steps));
      if (pages.counted() < k) {
        EXPECT_TRUE(ready);
        EXPECT_GE(k, 3U) << "nothing was refused";
        break;
      }
      ASSERT_FALSE(ready) << k;
      EXPECT_EQ(arena->span_count(), 0U) << "nothing is ours";
      EXPECT_EQ(pages.mapped_bytes(), 0U);
      pages.heal();
      EXPECT_TRUE(arena->init(pages, small_settings(std::size_t{16} << 20, in_steps)));
      EXPECT_NE(arena->claim(kSmall, 1, 1, 0).bits, 0U);
    }
}

TEST(Arena, InitInSteps_FirstPlaceOccupied_TakesAnother) {
  FakePages pages;
  auto arena = std::make_unique<Native::Type>();
  pages.fail(1, 1, FakePages::kReserveAt);
  EXPECT_TRUE(arena->init(pages, small_settings(std::size_t{16} << 20, true)));
  pages.fail(2, 2, FakePages::kReserveAt);  // the upper half's
  auto other = std::make_unique<Native::Type>();
  EXPECT_TRUE(other->init(pages, small_settings(std::size_t{16} << 20, true)));
  EXPECT_NE(arena->base(), other->base());
}

TEST(Arena, Init_CommitsNothing) {
  Native arena;
  EXPECT_TRUE(arena.ready());
  EXPECT_EQ(arena.pages.calls(FakePages::kCommit), 0U);
  EXPECT_EQ(arena->committed_bytes(), 0U);
  EXPECT_TRUE(arena.check());
}

// ---- claim ------------------------------------------------------------------------------------------------------------

TEST(Arena, Claim_EveryClass_GivesTheCallersShareAndOwnsTheSpan) {
  Native arena;
  for (unsigned c = 1; c < Classes::kCount; ++c)
    for (const unsigned keep : {1U, 64U}) {
      const Taken t = arena->claim(c, keep, 1, arena.now);
      const std::uint32_t slots = arena->pool(c).shape().slots;
      ASSERT_EQ(static_cast<unsigned>(std::popcount(t.bits)), std::min({keep, slots, 64U})) << c;
      EXPECT_EQ(arena->owners()[pool::block_of(t.leaf)].load(), c);
      EXPECT_EQ(arena->pool(c).free_slots(pool::block_of(t.leaf)), slots - std::min({keep, slots, 64U}));
      std::memset(arena.slot(c, t.leaf, 0), 1, Classes::slot_bytes(c));
    }
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_SmallClasses_ArePackedFromTheBottom) {
  Native arena;
  for (SpanIndex i = 0; i < 20; ++i) EXPECT_EQ(pool::block_of(arena->claim(1 + i % 30, 1, 1, arena.now).leaf), i);
  EXPECT_GE(pool::block_of(arena->claim(kBig, 1, 1, arena.now).leaf), arena->span_count() / 2)
      << "large slots lie elsewhere";
}

TEST(Arena, Claim_AnEmptySpanOfAnotherClass_IsReusedBeforeNewMemory) {
  Native arena;
  const auto all = arena.claim_whole(kSmall);
  arena.put(kSmall, all);
  EXPECT_TRUE(arena.check());
  const auto commits = arena.pages.calls(FakePages::kCommit);
  const Taken t = arena->claim(kOneWord, 1, 1, arena.now);
  EXPECT_EQ(pool::block_of(t.leaf), pool::block_of(all[0].leaf));
  EXPECT_EQ(arena.pages.calls(FakePages::kCommit), commits);
  EXPECT_EQ(arena->counters().span_returns, 1U);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_OneSlotStillOut_TheSpanStays) {
  Native arena;
  auto all = arena.claim_whole(kSmall);
  const Taken last = {all.back().leaf, all.back().bits & ~(all.back().bits - 1)};
  all.back().bits ^= last.bits;
  arena.put(kSmall, all);
  EXPECT_NE(pool::block_of(arena->claim(kOneWord, 1, 1, arena.now).leaf), pool::block_of(last.leaf));
  arena.put(kSmall, last);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(pool::block_of(arena->claim(kOneWord, 1, 1, arena.now).leaf), pool::block_of(last.leaf));
}

TEST(Arena, Claim_DenseHalfFull_TheOtherHalfServes) {
  Native arena(small_settings(std::size_t{1} << 20));  // 16 spans each
  std::set<SpanIndex> spans;
  for (int i = 0; i < 32; ++i) {
    const Taken t = arena->claim(kSmall, 1, 1, arena.now);
    ASSERT_NE(t.bits, 0U) << i;
    EXPECT_TRUE(spans.insert(pool::block_of(t.leaf)).second);
    EXPECT_TRUE(arena.check());
  }
  EXPECT_EQ(arena->claim(kSmall, 1, 1, arena.now).bits, 0U) << "the whole arena is out";
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_RunHalfFull_LargeSlotsEndInNoneNotInTheDenseHalf) {
  Native arena(small_settings(std::size_t{1} << 20));
  for (int i = 0; i < 16; ++i) ASSERT_NE(arena->claim(kBig, 1, 1, arena.now).bits, 0U) << i;
  EXPECT_EQ(arena->claim(kBig, 1, 1, arena.now).bits, 0U);
  EXPECT_NE(arena->claim(kSmall, 1, 1, arena.now).bits, 0U);
  EXPECT_TRUE(arena.check());
}

// ---- growing in steps -------------------------------------------------------------------------------------------------

TEST(Arena, GrowInSteps_ForeignMappingBehind_StopsThereAndLeavesItAlone) {
  Native arena(small_settings(std::size_t{64} << 20, true));
  ASSERT_TRUE(arena.ready());
  const auto begun = arena->claim(kSmall, 1, 1, arena.now);
  ASSERT_NE(begun.bits, 0U);
  // Somebody settles where the third step of the dense half would go.
  const auto place = reinterpret_cast<void*>(arena->base() + 2 * SmallConfig::kReserveStepSpans * kSpan);
  ASSERT_TRUE(os::Pages::reserve_at(place, kSpan));
  ASSERT_TRUE(os::Pages::commit(place, kSpan));
  std::memset(place, 77, kSpan);
  std::size_t dense = 1;
  while (pool::block_of(arena->claim(kSmall, 1, 1, arena.now).leaf) < arena->span_count() / 2) ++dense;
  EXPECT_EQ(dense, 2 * SmallConfig::kReserveStepSpans);
  EXPECT_EQ(std::count(static_cast<char*>(place), static_cast<char*>(place) + kSpan, 77),
            static_cast<std::ptrdiff_t>(kSpan));
  EXPECT_TRUE(arena.check());
  os::Pages::release(place, kSpan);
  EXPECT_LT(pool::block_of(arena->claim(kSmall, 1, 1, arena.now).leaf), arena->span_count() / 2) << "free again: grows on";
}

TEST(Arena, GrowInSteps_ReservesNoMoreThanAStepAhead) {
  Native arena(small_settings(std::size_t{64} << 20, true));
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(arena->claim(kSmall, 1, 1, arena.now).bits, 0U);
    const std::size_t used = (static_cast<std::size_t>(i) + 1) * kSpan;
    EXPECT_LE(arena->reserved_bytes(), used + 2 * SmallConfig::kReserveStepSpans * kSpan);
  }
}

TEST(Arena, Grow_WholeStepRefused_TakesWhatIsNeeded) {
  Native arena;
  ASSERT_NE(arena->claim(kSmall, 1, 1, arena.now).bits, 0U);
  for (SpanIndex i = 1; i < SmallConfig::kFirstStepSpans; ++i) (void)arena->claim(kSmall, 1, 1, arena.now);
  arena.pages.fail(2, 2, FakePages::kCommit);  // the records are committed, the step is not
  EXPECT_NE(arena->claim(kSmall, 1, 1, arena.now).bits, 0U);
  EXPECT_EQ(arena->committed_bytes(), (SmallConfig::kFirstStepSpans + 1) * kSpan);
  EXPECT_TRUE(arena.check());
}

// ---- runs -------------------------------------------------------------------------------------------------------------

TEST(Arena, Run_FreshOne_ReadsZeroAndSaysSo) {
  Native arena;
  const RunPlace place = arena.run(3);
  ASSERT_NE(place.first, kNoSpan);
  EXPECT_TRUE(place.zero);
  EXPECT_TRUE(test::all_zero(arena.memory(place.first), 3 * kSpan));
}

TEST(Arena, Run_Reused_IsNotCalledZeroUntilPurged) {
  Native arena;
  const RunPlace place = arena.run(3);
  std::memset(arena.memory(place.first), 1, 3 * kSpan);
  arena.free_run(place.first);
  const RunPlace again = arena.run(3);
  EXPECT_EQ(again.first, place.first);
  EXPECT_FALSE(again.zero);
  arena.free_run(again.first);
  EXPECT_EQ(arena->trim(arena.now), 3 * kSpan);
  const RunPlace clean = arena.run(3);
  EXPECT_EQ(clean.first, place.first);
  EXPECT_TRUE(clean.zero);
  EXPECT_TRUE(test::all_zero(arena.memory(clean.first), 3 * kSpan));
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Run_EveryAlignment_HoldsInAddresses) {
  Native arena(small_settings(std::size_t{64} << 20));
  for (SpanIndex alignment = 1; alignment <= 64; alignment *= 2)
    for (const SpanIndex length : {1U, 2U, 5U}) {
      const RunPlace place = arena.run(length, alignment);
      ASSERT_NE(place.first, kNoSpan) << alignment;
      EXPECT_EQ(arena->address(place.first) % (std::uintptr_t{alignment} * kSpan), 0U);
      EXPECT_TRUE(arena.check());
    }
}

TEST(Arena, Run_ExactlyTheHalf_FitsOnceAndAgainAfterFree) {
  Native arena;
  const auto half = static_cast<SpanIndex>(arena->span_count() / 2);
  for (int i = 0; i < 3; ++i) {
    const RunPlace place = arena.run(half);
    ASSERT_NE(place.first, kNoSpan) << i;
    EXPECT_EQ(arena.run(1).first, kNoSpan);
    arena.free_run(place.first);
    EXPECT_TRUE(arena.check());
  }
  EXPECT_EQ(arena.run(half + 1).first, kNoSpan);
}

// Dirty and clean runs are not merged; when only their union fits, everything is made clean.
TEST(Arena, Run_OnlyDirtyAndCleanTogetherFit_ArePurgedAndJoined) {
  Native arena(small_settings(std::size_t{1} << 20));
  const auto half = static_cast<SpanIndex>(arena->span_count() / 2);
  const RunPlace a = arena.run(half / 2), b = arena.run(half / 2);
  std::memset(arena.memory(a.first), 1, kSpan);
  arena.free_run(a.first);
  EXPECT_GT(arena->trim(arena.now), 0U);
  arena.free_run(b.first);
  EXPECT_TRUE(arena.check());
  const RunPlace whole = arena.run(half);
  ASSERT_NE(whole.first, kNoSpan);
  EXPECT_TRUE(whole.zero);
}

TEST(Arena, Run_EmptySpansOfLargeSlots_JoinTheRunsWhenSpaceIsShort) {
  Native arena(small_settings(std::size_t{1} << 20));
  std::vector<std::vector<Taken>> spans;
  for (int i = 0; i < 16; ++i) spans.push_back(arena.claim_whole(kBig));
  EXPECT_EQ(arena.run(16).first, kNoSpan);
  for (const auto& all : spans) arena.put(kBig, all);
  EXPECT_NE(arena.run(16).first, kNoSpan);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, ResizeRun_Shrink_GivesTheTailBack) {
  Native arena;
  const RunPlace place = arena.run(8);
  bool zero = false;
  {
    const sync::Guard guard(arena->lock());
    EXPECT_TRUE(arena->resize_run(place.first, 3, arena.now, zero));
    EXPECT_TRUE(arena->resize_run(place.first, 3, arena.now, zero)) << "the same length";
  }
  EXPECT_EQ(arena.run(5).first, place.first + 3);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, ResizeRun_GrowAtTheFrontier_StaysInPlaceAndTellsZero) {
  Native arena;
  const RunPlace place = arena.run(2);
  std::memset(arena.memory(place.first), 5, 2 * kSpan);
  bool zero = false;
  {
    const sync::Guard guard(arena->lock());
    EXPECT_TRUE(arena->resize_run(place.first, 6, arena.now, zero));
  }
  EXPECT_TRUE(zero);
  EXPECT_TRUE(test::all_zero(arena.memory(place.first + 2), 4 * kSpan));
  EXPECT_TRUE(arena.check());
}

TEST(Arena, ResizeRun_GrowIntoAFreeRun_KnowsWhetherItIsZero) {
  for (const bool purged : {false, true}) {
    Native arena;
    const RunPlace a = arena.run(2), b = arena.run(4), c = arena.run(1);
    std::memset(arena.memory(b.first), 5, 4 * kSpan);
    arena.free_run(b.first);
    if (purged) {
      EXPECT_EQ(arena->trim(arena.now), 4 * kSpan);
    }
    bool zero = false;
    {
      const sync::Guard guard(arena->lock());
      EXPECT_FALSE(arena->resize_run(a.first, 7, arena.now, zero)) << "one more than there is";
      EXPECT_TRUE(arena->resize_run(a.first, 5, arena.now, zero));
    }
    EXPECT_EQ(zero, purged);
    EXPECT_TRUE(arena.check());
    arena.free_run(a.first);
    arena.free_run(c.first);
    EXPECT_TRUE(arena.check());
  }
}

TEST(Arena, ResizeRun_NoRoomAndNoMemory_NothingChanges) {
  Native arena;
  const RunPlace a = arena.run(2);
  bool zero = false;
  const sync::Guard guard(arena->lock());
  arena.pages.fail_from_now_on();
  EXPECT_FALSE(arena->resize_run(a.first, 200, arena.now, zero));
  arena.pages.heal();
  EXPECT_TRUE(arena->resize_run(a.first, 200, arena.now, zero));
  EXPECT_TRUE(arena->check_invariants());
}

TEST(Arena, FreeRun_MoreThanIsWorthRetaining_GoesBackAtOnce) {
  Native arena(small_settings(std::size_t{64} << 20));
  std::vector<SpanIndex> runs;
  for (int i = 0; i < 40; ++i) runs.push_back(arena.run(16).first);  // 1 MiB each
  for (const SpanIndex first : runs) {
    arena.free_run(first);
    const std::uint64_t used = arena->reserved_bytes();  // an upper bound
    EXPECT_LE(arena->free_dirty_bytes(), SmallConfig::kRetainBytes + used / 4);
    EXPECT_TRUE(arena.check());
  }
  EXPECT_LE(arena->free_dirty_bytes(), SmallConfig::kRetainBytes);
}

// ---- giving back ------------------------------------------------------------------------------------------------------

TEST(Arena, Tick_BeforeTheDelay_KeepsAfterIt_Purges) {
  Native arena;
  const auto a = arena.claim_whole(kSmall), b = arena.claim_whole(kSmall);
  const RunPlace run = arena.run(2);
  arena.put(kSmall, a);
  arena.put(kSmall, b);
  arena.free_run(run.first);
  arena->tick(arena.now);
  EXPECT_EQ(arena->free_dirty_bytes(), 2 * kSpan) << "spans of a class stay for a second look";
  arena.now += 200;
  arena->tick(arena.now);
  EXPECT_EQ(arena->free_dirty_bytes(), 4 * kSpan);
  EXPECT_TRUE(arena.pages.purges().empty());
  arena.now += 299;  // 499 since the run was freed
  arena->tick(arena.now);
  EXPECT_TRUE(arena.pages.purges().empty());
  arena.now += 201;
  arena->tick(arena.now);
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  ASSERT_EQ(arena.pages.purges().size(), 2U) << "neighbouring spans go in one call";
  EXPECT_EQ(arena->counters().purged_bytes, 4 * kSpan);
  EXPECT_TRUE(arena.check());
}

// A thread that empties and fills its spans again and again keeps them.
TEST(Arena, Tick_SpanUsedBetweenTwoLooks_StaysWithItsClass) {
  Native arena;
  auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::block_of(all[0].leaf);
  for (int i = 0; i < 10; ++i) {
    arena.put(kSmall, all);
    arena.now += 1000;
    arena->tick(arena.now);
    ASSERT_EQ(arena->owners()[span].load(), kSmall);
    for (const Taken& t : all) {
      ASSERT_TRUE(arena->pool(kSmall).take_exactly(t.leaf, t.bits));
      arena->note_taken(t.leaf);
    }
  }
  arena.put(kSmall, all);
  for (int i = 0; i < 2; ++i) arena->tick(arena.now += 1000);
  EXPECT_EQ(arena->owners()[span].load(), 0U) << "idle at last";
}

TEST(Arena, Tick_Purged_IsNotPurgedAgain) {
  Native arena;
  arena.put(kSmall, arena.claim_whole(kSmall));
  EXPECT_EQ(arena->trim(arena.now), kSpan);
  EXPECT_EQ(arena->trim(arena.now), 0U);
  arena.now += 10'000;
  arena->tick(arena.now);
  EXPECT_EQ(arena.pages.purges().size(), 1U);
}

TEST(Arena, Tick_PurgeFails_TriesAgainLaterAndNothingIsLost) {
  Native arena;
  arena.put(kSmall, arena.claim_whole(kSmall));
  arena.free_run(arena.run(2).first);
  arena.pages.fail_from_now_on(FakePages::kPurge);
  EXPECT_EQ(arena->trim(arena.now), 0U);
  EXPECT_EQ(arena->free_dirty_bytes(), 3 * kSpan);
  EXPECT_TRUE(arena.check());
  arena.pages.heal();
  EXPECT_EQ(arena->trim(arena.now), 3 * kSpan);
  EXPECT_TRUE(arena.check());
}

// For every class: half of the slots live, in stretches, so that pages become free in every way. What lives keeps its
// content, every page without a live slot went back, and every slot can still be allocated once.
TEST(Arena, Trim_PartlyFreeSpans_ReturnsTheFreePagesAndKeepsLiveSlots) {
  std::mt19937 random(7);
  for (unsigned c = 1; c < Classes::kCount; ++c) {
    Native arena;
    const std::size_t bytes = Classes::slot_bytes(c);
    const auto all = arena.claim_whole(c);
    const SpanIndex span = pool::block_of(all[0].leaf);
    std::vector<std::pair<unsigned, Taken>> live;  // slot number, place
    std::uint32_t slots = 0;
    bool keep = false;
    for (const Taken& word : all)
      for (std::uint64_t bits = word.bits; bits != 0; bits &= bits - 1, ++slots) {
        const unsigned bit = base::lowest_bit(bits);
        std::memset(arena.slot(c, word.leaf, bit), 0xee, bytes);
        if (random() % std::max<std::uint32_t>(2, static_cast<std::uint32_t>(6000 / bytes)) == 0) keep = !keep;
        const Taken one{word.leaf, base::bit(bit)};
        if (keep && slots % 7 != 0)
          live.emplace_back(pool::word_of(word.leaf) * 64 + bit, one);
        else
          arena.put(c, one);
      }
    ASSERT_EQ(slots, arena->pool(c).shape().slots);
    std::set<std::size_t> live_pages;
    for (const auto& [number, place] : live)
      for (std::size_t at = number * bytes; at < (number + 1) * bytes; ++at) live_pages.insert(at / SmallConfig::kPageBytes);
    arena->trim(arena.now);
    ASSERT_TRUE(arena.check()) << c;
    for (const auto& [number, place] : live) {
      const char* slot = arena.memory(span) + number * bytes;
      ASSERT_EQ(std::count(slot, slot + bytes, '\xee'), static_cast<std::ptrdiff_t>(bytes))
          << "class " << c << ": " << number;
    }
    if (arena->pool(c).free_slots(span) * 4 >= slots && !live.empty())
      for (std::size_t page = 0; page < kSpan / SmallConfig::kPageBytes; ++page)
        if (page * SmallConfig::kPageBytes < slots * bytes) {
          const char* p = arena.memory(span) + page * SmallConfig::kPageBytes;
          EXPECT_EQ(test::all_zero(p, SmallConfig::kPageBytes), live_pages.count(page) == 0) << c << " page " << page;
        }
    EXPECT_EQ(arena->trim(arena.now), 0U) << "what is back is not given back again, class " << c;
    for (const auto& [number, place] : live) arena.put(c, place);
    EXPECT_TRUE(arena.check());
    (void)arena->trim(arena.now);
    EXPECT_EQ(arena->owners()[span].load(), 0U) << "wholly free: nobody's";
  }
}

TEST(Arena, Trim_PurgedPagesUsedAgain_AreReturnedAgain) {
  Native arena;
  auto all = arena.claim_whole(kSmall);
  const Taken last = all.back();
  all.pop_back();
  arena.put(kSmall, all);
  const std::size_t first = arena->trim(arena.now);
  EXPECT_GE(first, kSpan - 2 * SmallConfig::kPageBytes);
  pool::Cursor cursor;
  const Taken t = arena->pool(kSmall).take(cursor, 64, 1, 0);
  arena->note_taken(t.leaf);
  arena.put(kSmall, t);
  EXPECT_EQ(arena->trim(arena.now), first) << "what is known of the span's pages is forgotten when one is used";
  arena.put(kSmall, last);
}

TEST(Arena, Tick_PagesFreeAtTwoLooks_AreReturned) {
  Native arena(small_settings(std::size_t{64} << 20));
  std::vector<Taken> live;
  for (int i = 0; i < 64; ++i) {
    auto all = arena.claim_whole(kSmall);
    live.push_back({all[0].leaf, 1});
    all[0].bits &= ~std::uint64_t{1};
    arena.put(kSmall, all);
    arena->note_freed(kSpan);
  }
  arena->tick(arena.now);
  EXPECT_TRUE(arena.pages.purges().empty()) << "the first look only remembers";
  for (int i = 0; i < 20 && arena.pages.purges().empty(); ++i) {
    arena.now += 500;
    arena->tick(arena.now);
  }
  EXPECT_EQ(arena->counters().purged_bytes, 64 * (kSpan - SmallConfig::kPageBytes));
  EXPECT_TRUE(arena.check());
  for (const Taken& t : live) arena.put(kSmall, t);
}

// A program that frees one size and goes on with another: the new does not come on top of the old.
TEST(Arena, Claim_AfterAChangeOfSizes_FreePagesOfTheOldOnesGoBackFirst) {
  Native arena(small_settings(std::size_t{64} << 20));
  std::vector<std::vector<Taken>> spans;
  for (int i = 0; i < 256; ++i) spans.push_back(arena.claim_whole(kSmall));  // 16 MiB
  for (auto& all : spans) {                                                  // all but one slot of each
    all[0].bits &= ~std::uint64_t{1};
    arena.put(kSmall, all);
    arena->note_freed(kSpan);
  }
  for (int i = 0; i < 256; ++i) ASSERT_NE(arena->claim(kOneWord, 64, 1, arena.now).bits, 0U);
  EXPECT_GE(arena->counters().purged_bytes, 200 * (kSpan - SmallConfig::kPageBytes));
  EXPECT_TRUE(arena.check());
}

// ---- an empty span is noticed -----------------------------------------------------------------------------------------

// The seizer holds some words, gives up, and puts them back; the word that was missing comes back meanwhile.
TEST(Arena, Seize_MissingWordComesBackMeanwhile_TheEmptySpanIsNoticed) {
  Hooked arena;
  const auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::block_of(all[0].leaf);
  arena.put(kSmall, all);
  auto& last = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(
      *arena->word_address(pool::leaf_of(span, arena->pool(kSmall).shape().words() - 1)));
  // Just before the seizer takes the last word, a searcher does; just before the seizer puts the first one back, the
  // searcher returns his.
  test::HookedAtomics::interrupt_before_change_of(&last, [&] {
    pool::Cursor cursor{pool::leaf_of(span, arena->pool(kSmall).shape().words() - 1), pool::Cursor::kNoBlock};
    const Taken theirs = arena->pool(kSmall).take(cursor, 64, 9, 0);
    ASSERT_NE(theirs.bits, 0U);
    auto& first = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(*arena->word_address(pool::leaf_of(span, 0)));
    test::HookedAtomics::interrupt_before_change_of(&first, [&arena, theirs] { arena.put(kSmall, theirs); });
  });
  (void)arena->trim(arena.now);
  EXPECT_EQ(arena->pool(kSmall).free_slots(span), arena->pool(kSmall).shape().slots);
  EXPECT_TRUE(arena.check()) << "wholly free, and nobody knows";
  (void)arena->trim(arena.now);
  EXPECT_EQ(arena->owners()[span].load(), 0U);
}

// The purger holds the slots of the free pages; the rest of the span is freed meanwhile.
TEST(Arena, Purge_RestOfTheSpanIsFreedMeanwhile_TheEmptySpanIsNoticed) {
  Hooked arena;
  auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::block_of(all[0].leaf);
  const Taken last = all.back();
  all.pop_back();
  arena.put(kSmall, all);
  test::HookedAtomics::interrupt_before_change_of(&arena->span(span).page_hints, [&] { arena.put(kSmall, last); });
  (void)arena->trim(arena.now);
  EXPECT_EQ(arena->pool(kSmall).free_slots(span), arena->pool(kSmall).shape().slots);
  EXPECT_TRUE(arena.check()) << "wholly free, and nobody knows";
}

// A searcher of the span's former class holds a word of it for a moment; the rest is freed meanwhile.
TEST(Arena, Searcher_OfTheFormerClassHoldsTheLastWord_TheEmptySpanIsNoticed) {
  Hooked arena;
  const auto all = arena.claim_whole(kOneWord);
  const SpanIndex span = pool::block_of(all[0].leaf);
  arena.put(kOneWord, all);
  auto& word = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(*arena->word_address(pool::leaf_of(span, 0)));
  // Before he takes the word, the span goes to another class, where all but one of its words are free again. Before he
  // gives it back, that one is freed, too.
  test::HookedAtomics::interrupt_before_change_of(&word, [&] {
    auto theirs = arena.claim_whole(kSmall);
    ASSERT_EQ(pool::block_of(theirs[0].leaf), span);
    const Taken last = theirs.back();
    theirs.pop_back();
    arena.put(kSmall, theirs);
    test::HookedAtomics::interrupt_before_change_of(&word, [&arena, last] { arena.put(kSmall, last); });
  });
  pool::Cursor cursor{pool::leaf_of(span, 0), pool::Cursor::kNoBlock};
  EXPECT_EQ(arena->pool(kOneWord).take(cursor, 64, 9, 0).bits, 0U);
  EXPECT_EQ(arena->pool(kSmall).free_slots(span), arena->pool(kSmall).shape().slots);
  EXPECT_TRUE(arena.check()) << "wholly free, and nobody knows";
}

// ---- everything at random ---------------------------------------------------------------------------------------------

TEST(Arena, RandomLife_InvariantsHoldAfterEveryStep) {
  std::mt19937 random(42);
  Native arena(small_settings(std::size_t{4} << 20));
  std::vector<std::pair<unsigned, std::vector<Taken>>> spans;
  std::vector<RunPlace> runs;
  for (int step = 0; step < 4000; ++step) {
    arena.now += random() % 50;
    switch (random() % 8) {
      case 0:
      case 1: {
        const unsigned c = 1 + random() % (Classes::kCount - 1);
        auto all = arena.claim_whole(c);
        if (!all.empty()) spans.emplace_back(c, std::move(all));
        break;
      }
      case 2:
      case 3:
        if (!spans.empty()) {
          std::swap(spans[random() % spans.size()], spans.back());
          arena.put(spans.back().first, spans.back().second);
          spans.pop_back();
        }
        break;
      case 4: {
        const RunPlace place = arena.run(1 + random() % 9, SpanIndex{1} << random() % 4);
        if (place.first == kNoSpan) break;
        ASSERT_TRUE(!place.zero || test::all_zero(arena.memory(place.first), 64));
        std::memset(arena.memory(place.first), 3, 64);
        runs.push_back(place);
        break;
      }
      case 5:
        if (!runs.empty()) {
          std::swap(runs[random() % runs.size()], runs.back());
          arena.free_run(runs.back().first);
          runs.pop_back();
        }
        break;
      case 6:
        if (!runs.empty()) {
          bool zero = false;
          const sync::Guard guard(arena->lock());
          (void)arena->resize_run(runs[random() % runs.size()].first, 1 + random() % 12, arena.now, zero);
        }
        break;
      default:
        if (random() % 8 == 0)
          (void)arena->trim(arena.now);
        else
          arena->tick(arena.now);
    }
    ASSERT_TRUE(arena.check()) << step;
  }
  for (auto& [c, all] : spans) arena.put(c, all);
  for (const RunPlace& place : runs) arena.free_run(place.first);
  (void)arena->trim(arena.now);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  std::size_t spans_left = 0;
  while (arena.run(1).first != kNoSpan) ++spans_left;
  EXPECT_EQ(spans_left, arena->span_count() / 2) << "nothing is lost";
}

}  // namespace
}  // namespace freehold::alloc
