// SPDX-License-Identifier: MIT
#include "freehold/alloc/arena.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/alloc/support.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::alloc {
namespace {

using test::FakePages;
using test::kChunk;
using test::kPagesPerSpan;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using Classes = SizeClasses;
using pool::Taken;

constexpr unsigned kChunkSpans = SmallConfig::kChunkSpans;
constexpr unsigned kSpanPages = kSpan / SmallConfig::kPageBytes;
constexpr std::size_t kMiB = std::size_t{1} << 20;

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

  [[nodiscard]] char* slot(SizeClass c, pool::WordIndex index, unsigned bit) {
    return reinterpret_cast<char*>(arena_->geometry(c).address(index, bit));
  }
  // Reports slots as caches do, at once.
  void report(SizeClass c, std::uint64_t bits, int sign) {
    if (arena_->report_slots(sign *
                             static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(bits)) * Classes::slot_bytes(c))))
      (void)arena_->relieve(now);
  }
  [[nodiscard]] Taken claim(SizeClass c, unsigned keep = 1) {
    const Taken t = arena_->claim(c, keep, 1, now);
    if (t.bits != 0) report(c, t.bits, 1);
    return t;
  }
  [[nodiscard]] SpanIndex claim_span(SizeClass c) {
    const Taken t = claim(c);
    return t.bits == 0 ? kNoSpan : pool::span_of(t.word);
  }
  // Every slot of a new span of class c.
  [[nodiscard]] std::vector<Taken> claim_whole(SizeClass c) {
    std::vector<Taken> all;
    const Taken first = claim(c, 64);
    if (first.bits == 0) return all;
    all.push_back(first);
    for (unsigned w = 0; w < arena_->pool(c).shape().words(); ++w) {
      const pool::WordIndex index = pool::word_index(pool::span_of(first.word), w);
      const std::uint64_t bits = arena_->word_address(index)->load(std::memory_order_relaxed);
      if (bits == 0) continue;
      take(c, {index, bits});
      all.push_back({index, bits});
    }
    return all;
  }
  void take(SizeClass c, const Taken& t) {
    EXPECT_TRUE(arena_->pool(c).take_exactly(t.word, t.bits));
    arena_->note_taken(pool::span_of(t.word));
    report(c, t.bits, 1);
  }
  void put(SizeClass c, const Taken& t) {
    EXPECT_EQ(arena_->give_slots(c, t), 0U);
    report(c, t.bits, -1);
  }
  void put(SizeClass c, const std::vector<Taken>& all) {
    for (const Taken& t : all) put(c, t);
  }
  // A span of class c of which one slot stays out; returns that.
  [[nodiscard]] Taken all_but_one(SizeClass c) {
    auto all = claim_whole(c);
    if (all.empty()) return {};
    const Taken one{all[0].word, all[0].bits & ~(all[0].bits - 1)};
    all[0].bits ^= one.bits;
    put(c, all);
    return one;
  }
  [[nodiscard]] RunPlace run(SpanIndex spans, SpanIndex alignment = 1) {
    return arena_->allocate_run(spans * kSpanPages, alignment, now);
  }
  [[nodiscard]] bool resize(SpanIndex first, SpanIndex spans) { return arena_->resize_run(first, spans * kSpanPages, now); }
  void free_run(SpanIndex first) { EXPECT_TRUE(arena_->free_run(first, now)); }
  [[nodiscard]] char* memory(SpanIndex i) { return reinterpret_cast<char*>(arena_->address(i)); }
  [[nodiscard]] bool zero(SpanIndex first, std::size_t spans) { return test::all_zero(memory(first), spans * kSpan); }
  [[nodiscard]] SizeClass class_of(SpanIndex i) { return arena_->class_of_span(i); }
  [[nodiscard]] bool check() { return arena_->check_invariants() && arena_->check_accounts({}); }
  [[nodiscard]] std::uint64_t purged() { return arena_->counters().purged_bytes; }
  // Free memory that may be resident, by a count.
  [[nodiscard]] std::int64_t free_bytes() {
    return static_cast<std::int64_t>(arena_->free_dirty_bytes()) + arena_->budget().free_in_spans();
  }

  FakePages pages;
  std::uint64_t now = 1'000'000;

 private:
  std::unique_ptr<Type> arena_;
  bool ready_ = false;
};

// The CPU that a thread runs on is the test's to say.
struct AtomicsOnCpu : sync::NativeAtomics {
  static inline thread_local unsigned cpu = 0;
  static unsigned cpu_id() noexcept { return cpu; }
};
using Native = TestArena<AtomicsOnCpu>;
using Hooked = TestArena<test::HookedAtomics>;

constexpr SizeClass kSmall = Classes::class_of(64);      // in slot chunks
constexpr SizeClass kOneWord = Classes::class_of(1024);  // in slot chunks, 64 slots: one word a span
constexpr SizeClass kBig = Classes::class_of(4096);      // in run chunks, 16 slots

// ---- start ------------------------------------------------------------------------------------------------------------

TEST(Arena, Init_AnyCallRefusedForEver_FalseAndNothingStays) {
  for (std::uint64_t k = 1;; ++k) {
    FakePages pages;
    auto arena = std::make_unique<Native::Type>();
    pages.fail(k, FakePages::kNever);
    const bool ready = arena->init(pages, small_settings());
    const bool refused = pages.counted() >= k;
    pages.heal();
    if (!refused) {
      EXPECT_TRUE(ready);
      EXPECT_GE(k, 5U) << "nothing was refused";
      break;
    }
    ASSERT_FALSE(ready) << k;
    EXPECT_EQ(arena->span_count(), 0U) << "nothing is ours";
    EXPECT_TRUE(arena->init(pages, small_settings())) << "may be tried again";
    EXPECT_NE(arena->claim(kSmall, 1, 1, 0).bits, 0U);
    EXPECT_TRUE(arena->check_invariants());
  }
}

// To unmap is refused, too, in the test above; here it is not.
TEST(Arena, Init_EveryMappingRefused_LeavesNothingMapped) {
  for (std::uint64_t k = 1; k < 12; ++k) {
    FakePages pages;
    auto arena = std::make_unique<Native::Type>();
    pages.fail(k, FakePages::kNever, FakePages::kMapAt);
    if (arena->init(pages, small_settings())) break;
    EXPECT_EQ(pages.mapped_bytes(), 0U) << k;
  }
}

TEST(Arena, Init_OneCallRefused_TakesAnotherPlace) {
  for (std::uint64_t k = 1; k < 8; ++k) {
    FakePages pages;
    auto arena = std::make_unique<Native::Type>();
    pages.fail(k, k, FakePages::kMapAt);
    EXPECT_TRUE(arena->init(pages, small_settings())) << k;
    pages.heal();
    EXPECT_NE(arena->claim(kSmall, 1, 1, 0).bits, 0U);
    EXPECT_EQ(pages.mapped_bytes(), arena->metadata_bytes() + arena->committed_bytes()) << "nothing stays elsewhere";
  }
}

TEST(Arena, Init_MapsALittleMetadataAndNoMemory) {
  Native arena(small_settings(std::size_t{1} << 36));
  EXPECT_TRUE(arena.ready());
  EXPECT_EQ(arena->committed_bytes(), 0U);
  EXPECT_EQ(arena->span_count(), 0U);
  EXPECT_EQ(arena.pages.mapped_bytes(), arena->metadata_bytes());
  EXPECT_LT(arena->metadata_bytes(), kMiB);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, TwoArenas_LieApart) {
  Native a, b;
  ASSERT_TRUE(a.ready() && b.ready());
  EXPECT_NE(a->base(), b->base());
  const RunPlace mine = a.run(1), theirs = b.run(1);
  std::memset(a.memory(mine.first), 1, kSpan);
  EXPECT_TRUE(b.zero(theirs.first, 1));
}

// ---- growing ----------------------------------------------------------------------------------------------------------

TEST(Arena, Grow_ChunkByChunk_MapsWhatIsNeeded) {
  Native arena;
  for (unsigned i = 1; i <= 5 * kChunkSpans; ++i) {
    ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
    EXPECT_EQ(arena->committed_bytes(), (i + kChunkSpans - 1) / kChunkSpans * kChunk);
    EXPECT_EQ(arena.pages.mapped_bytes(), arena->metadata_bytes() + arena->committed_bytes());
  }
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Grow_SeveralCpus_AChunkEachUnlessMemoryIsLocked) {
  constexpr unsigned kCpus = 4;
  for (const bool locked : {false, true}) {
    Native arena;
    arena->expect_threads(kCpus);
    if (locked) arena.pages.lock_memory();
    for (AtomicsOnCpu::cpu = 0; AtomicsOnCpu::cpu < kCpus; ++AtomicsOnCpu::cpu) {
      ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
      ASSERT_NE(arena.run(1).first, kNoSpan);
    }
    AtomicsOnCpu::cpu = 0;
    EXPECT_EQ(arena->committed_bytes(), (locked ? 2 : 2 * kCpus) * kChunk);
    EXPECT_TRUE(arena.check());
  }
}

TEST(Arena, Grow_OneThreadOnSeveralCpus_StaysWithItsChunks) {
  Native arena;
  for (unsigned i = 0; i < 2 * kChunkSpans; ++i) {
    AtomicsOnCpu::cpu = i % 4;
    ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
    EXPECT_EQ(arena->committed_bytes(), (i / kChunkSpans + 1) * kChunk) << i;
  }
  AtomicsOnCpu::cpu = 0;
  EXPECT_TRUE(arena.check());
}

// Many threads want memory when there is none: one of them grows the arena, the others take of that.
TEST(Arena, Grow_WaitedForByAnotherThread_OneChunkForBoth) {
  for (int round = 0; round < 3; ++round) {
    Native arena;
    std::atomic<bool> growing{false}, waits{false};
    arena.pages.before_map_at = [&] {
      if (growing.exchange(true)) return;
      while (!waits) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until it waits for the lock
    };
    std::thread first([&] { EXPECT_NE(arena.run(1).first, kNoSpan); });
    while (!growing) std::this_thread::yield();
    std::thread second([&] {
      waits = true;
      EXPECT_NE(arena.run(1).first, kNoSpan);
    });
    first.join();
    second.join();
    ASSERT_EQ(arena->committed_bytes(), kChunk);
    EXPECT_TRUE(arena.check());
  }
}

// Where the system refuses a large step of the tables, they grow by what is needed.
TEST(Arena, Grow_OnlySmallMappings_TheTablesGrowByLittle) {
  Native large(small_settings(std::size_t{1} << 38)), little(small_settings(std::size_t{1} << 38));
  ASSERT_NE(large.run(1).first, kNoSpan);
  std::size_t most = 0;
  little.pages.allows_map_at = [&](std::size_t bytes) { return bytes == kChunk || bytes <= most; };
  for (most = SmallConfig::kPageBytes; little.run(1).first == kNoSpan; most += SmallConfig::kPageBytes)
    ASSERT_LT(most, kChunk);
  if (kPagesPerSpan == 1) {  // no table's large step is more than a page
    EXPECT_EQ(little->metadata_bytes(), large->metadata_bytes());
  } else {
    EXPECT_LT(little->metadata_bytes(), large->metadata_bytes());
  }
  EXPECT_TRUE(little.check());
}

// In a large arena the tables grow in steps, and what lies behind the mapped part is never touched.
TEST(Arena, Grow_LargeArena_TablesGrowWithIt) {
  Native arena(small_settings(std::size_t{1} << 38));
  const std::uint64_t first = arena->metadata_bytes();
  for (unsigned i = 0; i < 40 * kChunkSpans; ++i) {
    const SpanIndex span = i % 3 == 0 ? arena.claim_span(kSmall) : arena.run(1).first;
    ASSERT_NE(span, kNoSpan) << i;
  }
  EXPECT_GT(arena->metadata_bytes(), first);
  EXPECT_LT(arena->metadata_bytes(), 4 * kMiB);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Extents_KindsLieInStretchesOfTheirOwn) {
  Native arena(small_settings(64 * kMiB));
  std::vector<ChunkKind> kinds;
  for (unsigned i = 0; i < 16; ++i) {
    const SpanIndex a = arena.run(kChunkSpans).first;
    for (unsigned k = 0; k < kChunkSpans; ++k) ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
    const auto chunk = a / kChunkSpans;
    kinds.resize(std::max<std::size_t>(kinds.size(), chunk + 1));
    kinds[chunk] = ChunkKind::kRuns;
  }
  EXPECT_TRUE(arena.check());
  unsigned changes = 0;
  for (std::size_t i = 1; i < kinds.size(); ++i) changes += kinds[i] != kinds[i - 1] ? 1 : 0;
  EXPECT_LE(changes, 14U) << "32 chunks, one by one in turn, are not 32 stretches";
}

TEST(Arena, Grow_TableRefused_NothingIsLostAndLaterItGoesOn) {
  for (std::uint64_t k = 1; k <= 30; ++k) {
    Native arena;
    unsigned had = 0;
    arena.pages.fail(k, FakePages::kNever, FakePages::kMapAt);
    for (; had < 20 * kChunkSpans && arena.run(1).first != kNoSpan; ++had) {
    }
    EXPECT_TRUE(arena.check());
    arena.pages.heal();
    for (; arena.run(1).first != kNoSpan; ++had) {
    }
    EXPECT_EQ(had, 32 * kMiB / kSpan) << "every span, once: refused at " << k;
    EXPECT_TRUE(arena.check());
  }
}

TEST(Arena, Full_EachKindTakesWhatIsSetAsideForTheOther) {
  for (const bool runs : {true, false}) {
    Native arena(small_settings(16 * kMiB));
    ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
    ASSERT_NE(arena.run(1).first, kNoSpan);
    std::set<SpanIndex> spans;
    for (;;) {
      const SpanIndex i = runs ? arena.run(1).first : arena.claim_span(kSmall);
      if (i == kNoSpan) break;
      EXPECT_TRUE(spans.insert(i).second);
    }
    EXPECT_EQ(spans.size(), 16 * kMiB / kSpan - 2) << "all of it, also what lies in chunks of the other kind";
    EXPECT_TRUE(arena.check());
    EXPECT_EQ(arena.run(1).first, kNoSpan);
    EXPECT_EQ(arena.claim_span(kSmall), kNoSpan);
    EXPECT_EQ(arena.claim_span(kBig), kNoSpan);
  }
}

// A write before the first block of all is a fault, not damage.
TEST(Arena, BeforeTheFirstSpan_NobodyCanMapOrWrite) {
  Native arena(small_settings(16 * kMiB));
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  constexpr std::size_t kPage = 4096;
  EXPECT_FALSE(os::Pages::map_at(arena.memory(0) - kPage, kPage));
  EXPECT_EQ(::write(STDERR_FILENO, arena.memory(0) - kPage, 1), -1);
}

TEST(Arena, ForeignMappingInside_IsLeftAloneAndMemoryGrowsElsewhere) {
  Native arena(small_settings(16 * kMiB));
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  ASSERT_NE(arena.run(1).first, kNoSpan);
  // A foreign mapping lies in the third chunk and in the sixth.
  for (const unsigned chunk : {2U, 5U}) {
    void* const place = arena.memory(chunk * kChunkSpans) + 3 * kSpan;
    ASSERT_TRUE(os::Pages::map_at(place, kSpan));
    std::memset(place, 77, kSpan);
  }
  std::size_t spans = 2;
  for (bool more = true; more;) {
    more = false;
    for (const bool run : {true, false}) {
      const SpanIndex i = run ? arena.run(1).first : arena.claim_span(kSmall);
      if (i == kNoSpan) continue;
      more = true;
      ++spans;
      EXPECT_NE(i / kChunkSpans, 2U);
      EXPECT_NE(i / kChunkSpans, 5U);
    }
  }
  EXPECT_EQ(spans, 14 * kChunkSpans) << "all but the two chunks where somebody is";
  (void)arena->trim(arena.now);
  EXPECT_TRUE(arena.check());
  for (const unsigned chunk : {2U, 5U}) {
    char* const place = arena.memory(chunk * kChunkSpans) + 3 * kSpan;
    EXPECT_EQ(std::count(place, place + kSpan, 77), static_cast<std::ptrdiff_t>(kSpan));
    os::Pages::release(place, kSpan);
  }
}

// ---- claim ------------------------------------------------------------------------------------------------------------

TEST(Arena, Claim_EveryClass_GivesTheCallersShareAndTheSpanIsTheClasss) {
  Native arena;
  for (const SizeClass c : AllClasses<Classes>{})
    for (const unsigned keep : {1U, 64U}) {
      const Taken t = arena.claim(c, keep);
      const std::uint32_t slots = arena->pool(c).shape().slots;
      ASSERT_EQ(static_cast<unsigned>(std::popcount(t.bits)), std::min({keep, slots, 64U})) << c.index();
      EXPECT_EQ(arena.class_of(pool::span_of(t.word)), c);
      EXPECT_EQ(arena->pool(c).free_slots(pool::span_of(t.word)), slots - std::min({keep, slots, 64U}));
      std::memset(arena.slot(c, t.word, 0), 1, Classes::slot_bytes(c));
    }
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_SmallClasses_ArePackedFromTheBottom) {
  Native arena;
  for (SpanIndex i = 0; i < kChunkSpans; ++i) EXPECT_EQ(arena.claim_span(SizeClass{1 + i % 16}), i);
  EXPECT_GE(arena.claim_span(kBig), kChunkSpans) << "large slots lie elsewhere";
}

TEST(Arena, Claim_AnEmptySpanOfAnotherClass_IsReusedBeforeNewMemory) {
  Native arena;
  const auto all = arena.claim_whole(kSmall);
  arena.put(kSmall, all);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena.claim_span(kOneWord), pool::span_of(all[0].word));
  EXPECT_EQ(arena->counters().span_returns, 1U);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_OneSlotStillOut_TheSpanStays) {
  Native arena;
  const Taken last = arena.all_but_one(kSmall);
  EXPECT_NE(arena.claim_span(kOneWord), pool::span_of(last.word));
  arena.put(kSmall, last);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena.claim_span(kOneWord), pool::span_of(last.word));
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Claim_EveryClassIsFull_EmptySpansOfOthersServe) {
  Native arena(small_settings(4 * kMiB));
  std::vector<std::vector<Taken>> spans;
  for (auto all = arena.claim_whole(kSmall); !all.empty(); all = arena.claim_whole(kSmall)) spans.push_back(all);
  ASSERT_EQ(spans.size(), 4 * kMiB / kSpan);
  EXPECT_EQ(arena.run(2).first, kNoSpan);
  arena.put(kSmall, spans[5]);
  arena.put(kSmall, spans[6]);
  const RunPlace place = arena.run(2);
  EXPECT_EQ(place.first, std::min(pool::span_of(spans[5][0].word), pool::span_of(spans[6][0].word)));
  EXPECT_FALSE(place.zero);
  EXPECT_TRUE(arena.check());
}

// ---- runs -------------------------------------------------------------------------------------------------------------

TEST(Arena, Run_FreshOne_ReadsZeroAndSaysSo) {
  Native arena;
  const RunPlace place = arena.run(3);
  ASSERT_NE(place.first, kNoSpan);
  EXPECT_TRUE(place.zero);
  EXPECT_TRUE(arena.zero(place.first, 3));
  EXPECT_EQ(arena->run_pages(place.first), 3 * kSpanPages);
}

TEST(Arena, Run_OfPages_TakesWholeSpansAndKnowsItsPages) {
  Native arena;
  const RunPlace a = arena->allocate_run(kSpanPages + 1, 1, arena.now), b = arena->allocate_run(1, 1, arena.now);
  EXPECT_EQ(b.first, a.first + 2);
  EXPECT_EQ(arena->run_pages(a.first), kSpanPages + 1);
  EXPECT_TRUE(arena->is_in_used_run(a.first + 1));
  EXPECT_FALSE(arena->is_in_used_run(b.first + 1));
  EXPECT_TRUE(arena.check());
  EXPECT_FALSE(arena->free_run(a.first + 1, arena.now)) << "no run begins there";
  arena.free_run(a.first);
  EXPECT_FALSE(arena->free_run(a.first, arena.now)) << "twice";
  EXPECT_FALSE(arena->is_in_used_run(a.first));
  EXPECT_TRUE(arena.check());
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
  EXPECT_TRUE(arena.zero(clean.first, 3));
  EXPECT_TRUE(arena.check());
}

// Half of the run went back, half holds the former user's bytes.
TEST(Arena, Run_PartlyDirty_IsNotCalledZero) {
  Native arena;
  const RunPlace whole = arena.run(kChunkSpans);
  std::memset(arena.memory(whole.first), 1, kChunk);
  arena.free_run(whole.first);
  (void)arena->trim(arena.now);
  const RunPlace a = arena.run(1);
  std::memset(arena.memory(a.first), 1, kSpan);
  arena.free_run(a.first);
  const RunPlace both = arena.run(kChunkSpans);
  ASSERT_EQ(both.first, whole.first);
  EXPECT_FALSE(both.zero);
  EXPECT_TRUE(arena.check());
}

// A span of a class was written to; as a free span, whether reclaimed by a claim, a run or the purger, it is not zero.
TEST(Arena, Run_OfSpansThatBelongedToAClass_IsNotCalledZero) {
  Native arena(small_settings(2 * kMiB));
  std::vector<std::pair<SpanIndex, std::vector<Taken>>> spans;
  for (auto all = arena.claim_whole(kBig); !all.empty(); all = arena.claim_whole(kBig)) {
    const SpanIndex i = pool::span_of(all[0].word);
    std::memset(arena.memory(i), 1, kSpan);
    spans.emplace_back(i, all);
  }
  ASSERT_EQ(spans.size(), 2 * kChunkSpans);
  for (auto& [i, all] : spans) arena.put(kBig, all);
  const RunPlace run = arena.run(kChunkSpans);
  ASSERT_NE(run.first, kNoSpan);
  EXPECT_TRUE(!run.zero || arena.zero(run.first, kChunkSpans));
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Run_EveryAlignment_HoldsInAddresses) {
  Native arena(small_settings(64 * kMiB));
  for (SpanIndex alignment = 1; alignment <= kChunkSpans; alignment *= 2)
    for (const SpanIndex length : {1U, 2U, 5U, 16U}) {
      const RunPlace place = arena.run(length, alignment);
      ASSERT_NE(place.first, kNoSpan) << alignment;
      EXPECT_EQ(arena->address(place.first) % (std::uintptr_t{alignment} * kSpan), 0U);
      EXPECT_TRUE(arena.check());
    }
}

TEST(Arena, Run_WholeChunks_FitOnceAndAgainAfterFree) {
  Native arena(small_settings(4 * kMiB));
  for (int i = 0; i < 3; ++i) {
    std::vector<SpanIndex> runs;
    for (RunPlace place = arena.run(kChunkSpans); place.first != kNoSpan; place = arena.run(kChunkSpans))
      runs.push_back(place.first);
    EXPECT_EQ(runs.size(), 4U);
    EXPECT_EQ(arena.run(1).first, kNoSpan);
    for (const SpanIndex first : runs) arena.free_run(first);
    EXPECT_TRUE(arena.check());
  }
}

TEST(Arena, ResizeRun_Shrink_GivesTheTailBack) {
  Native arena;
  const RunPlace place = arena.run(8);
  EXPECT_TRUE(arena.resize(place.first, 3));
  EXPECT_TRUE(arena.resize(place.first, 3)) << "the same length";
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena.run(5).first, place.first + 3);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, ResizeRun_GrowInPlace_UpToTheChunksEnd) {
  Native arena;
  const RunPlace place = arena.run(2);
  ASSERT_EQ(place.first % kChunkSpans, 0U);
  std::memset(arena.memory(place.first), 5, 2 * kSpan);
  EXPECT_FALSE(arena.resize(place.first, kChunkSpans + 1));
  EXPECT_EQ(arena->run_pages(place.first), 2 * kSpanPages);
  EXPECT_TRUE(arena.resize(place.first, kChunkSpans));
  EXPECT_TRUE(arena.zero(place.first + 2, kChunkSpans - 2));
  EXPECT_TRUE(arena.check());
  arena.free_run(place.first);
  EXPECT_EQ(arena->free_dirty_bytes(), kChunk);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, ResizeRun_NoRoom_NothingChanges) {
  Native arena;
  const RunPlace a = arena.run(2), b = arena.run(4), c = arena.run(1);
  std::memset(arena.memory(b.first), 5, 4 * kSpan);
  arena.free_run(b.first);
  EXPECT_FALSE(arena.resize(a.first, 7)) << "one more than there is";
  EXPECT_TRUE(arena.check());
  EXPECT_TRUE(arena.resize(a.first, 5));
  EXPECT_TRUE(arena.check());
  arena.free_run(a.first);
  arena.free_run(c.first);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena->free_dirty_bytes(), 7 * kSpan);
}

// ---- giving back by the budget ----------------------------------------------------------------------------------------

TEST(Arena, FreeRun_MoreThanTheBudget_GoesBackAtOnce) {
  Native arena(small_settings(64 * kMiB));
  std::vector<SpanIndex> runs;
  for (int i = 0; i < 60; ++i) {
    runs.push_back(arena.run(kChunkSpans).first);
    ASSERT_NE(runs.back(), kNoSpan);
    std::memset(arena.memory(runs.back()), 1, 1);
  }
  std::uint64_t used = 60 * kMiB;
  for (const SpanIndex first : runs) {
    arena.free_run(first);
    used -= kMiB;
    // What a shard has not reported of either figure, and what is not worth a step.
    constexpr std::uint64_t kSlack = 2 * kMiB + 256 * 1024;
    EXPECT_LE(arena->free_dirty_bytes(), SmallConfig::kKeepBytes + used / SmallConfig::kKeepShare + kSlack);
    ASSERT_TRUE(arena.check());
  }
  EXPECT_GE(arena.purged(), 56 * kMiB);
}

TEST(Arena, FreedSpansOfAClass_MoreThanTheBudget_GoBackAtOnce) {
  Native arena(small_settings(64 * kMiB));
  std::vector<std::vector<Taken>> spans;
  for (unsigned i = 0; i < 20 * kChunkSpans; ++i) spans.push_back(arena.claim_whole(kOneWord));
  for (const auto& all : spans) {
    arena.put(kOneWord, all);
    EXPECT_LE(arena->budget().excess(), static_cast<std::int64_t>(2 * kMiB + 512 * 1024));
  }
  EXPECT_TRUE(arena.check());
  EXPECT_LE(arena.free_bytes(), static_cast<std::int64_t>(SmallConfig::kKeepBytes + 2 * kMiB + 512 * 1024));
}

// A program that frees one size and goes on with another: the free pages of partly used spans go back.
TEST(Arena, FreedSlotsOfSpansInUse_MoreThanTheBudget_TheirPagesGoBack) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  Native arena(small_settings(64 * kMiB));
  std::vector<Taken> live;
  for (int i = 0; i < 256; ++i) live.push_back(arena.all_but_one(kSmall));  // 16 MiB
  EXPECT_TRUE(arena.check());
  EXPECT_GE(arena.purged(), 12 * kMiB);
  EXPECT_LE(arena.free_bytes(),
            static_cast<std::int64_t>(SmallConfig::kKeepBytes + 512 * 1024 + 256 * SmallConfig::kPageBytes));
  for (const Taken& t : live) arena.put(kSmall, t);
  EXPECT_TRUE(arena.check());
  (void)arena->trim(arena.now);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena->budget().figures().returned, 0);
  EXPECT_EQ(arena->budget().figures().class_spans, 0);
}

// What goes back and is asked for again at once is regretted: the next rounds keep it.
TEST(Arena, Sawtooth_SettlesWithoutSystemCalls) {
  Native arena(small_settings(64 * kMiB));
  std::uint64_t last = 0;
  for (int round = 0; round < 40; ++round) {
    last = arena->counters().purge_calls;
    std::vector<SpanIndex> runs;
    for (int i = 0; i < 24; ++i) runs.push_back(arena.run(kChunkSpans).first);
    for (const SpanIndex first : runs) arena.free_run(first);
    arena.now += 2;
    ASSERT_TRUE(arena.check());
  }
  EXPECT_EQ(arena->counters().purge_calls, last);
  EXPECT_GE(arena->free_dirty_bytes(), 20 * kMiB);
  for (int i = 0; i < 30; ++i) arena->tick(arena.now += 1000);
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  EXPECT_EQ(arena->budget().allowance(), SmallConfig::kKeepBytes) << "forgotten";
}

// ---- giving back by the delay -----------------------------------------------------------------------------------------

TEST(Arena, Tick_BeforeTheDelay_KeepsAfterIt_Purges) {
  Native arena;
  const RunPlace run = arena.run(2);
  arena.free_run(run.first);
  EXPECT_TRUE(arena->something_due());
  arena->tick(arena.now);
  arena.now += 499;
  arena->tick(arena.now);
  EXPECT_TRUE(arena.pages.purges().empty());
  EXPECT_EQ(arena->free_dirty_bytes(), 2 * kSpan);
  arena.now += 201;
  arena->tick(arena.now);
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  ASSERT_EQ(arena.pages.purges().size(), 1U) << "neighbouring spans go in one call";
  EXPECT_EQ(arena.purged(), 2 * kSpan);
  EXPECT_TRUE(arena.check());
  for (int i = 0; i < 3; ++i) arena->tick(arena.now += 1000);
  EXPECT_FALSE(arena->something_due()) << "nothing waits any more";
  EXPECT_EQ(arena.pages.purges().size(), 1U) << "what is back is not given back again";
}

// The delay of a chunk begins with the last of its spans that became free.
TEST(Arena, Tick_ChunkWithASpanFreedLongBefore_KeepsTheYounger) {
  Native arena;
  const SpanIndex older = arena.run(2).first, younger = arena.run(2).first;
  arena.free_run(older);
  arena.now += 400;
  arena.free_run(younger);
  arena->tick(arena.now += 300);
  EXPECT_TRUE(arena.pages.purges().empty());
  arena->tick(arena.now += 300);
  EXPECT_EQ(arena.purged(), 4 * kSpan);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, PurgeIdle_FreedAfterTheClockWasRead_Keeps) {
  Native arena;
  const RunPlace run = arena.run(3);
  ASSERT_NE(run.first, kNoSpan);
  const std::uint64_t read = arena.now;
  arena.now += 4;
  arena.free_run(run.first);
  EXPECT_EQ(arena->purge_idle(read), Due::kLater);
  EXPECT_TRUE(arena->something_due()) << "slow calls go on with it";
  EXPECT_EQ(arena.purged(), 0U);
  EXPECT_EQ(arena->purge_idle(arena.now + 500), Due::kNothing);
  EXPECT_EQ(arena.purged(), 3 * kSpan);
}

// A span of which a slot was out at the purger's last look.
TEST(Arena, LastSlotOfASpanIsFreed_ThePurgerHearsOfIt) {
  Native arena;
  const Taken last = arena.all_but_one(kSmall);
  for (int i = 0; i < 10 && arena->purge_idle(arena.now) != Due::kNothing; ++i) arena.now += 1000;
  ASSERT_FALSE(arena->something_due());
  arena.put(kSmall, last);
  EXPECT_TRUE(arena->something_due());
  for (int i = 0; i < 10 && arena->purge_idle(arena.now) != Due::kNothing; ++i) arena.now += 1000;
  EXPECT_EQ(arena.class_of(pool::span_of(last.word)), SizeClass{});
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Tick_AcrossTheWrapOf32BitsOfMilliseconds_KeepsTheDelay) {
  Native arena;
  arena.now = (std::uint64_t{9} << 32) - 100;
  arena.free_run(arena.run(2).first);
  arena->tick(arena.now += 300);
  EXPECT_TRUE(arena.pages.purges().empty());
  arena->tick(arena.now += 300);
  EXPECT_EQ(arena.purged(), 2 * kSpan);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Tick_SpansOfAClass_GoAtTheSecondLook) {
  Native arena;
  const auto a = arena.claim_whole(kSmall), b = arena.claim_whole(kSmall);
  arena.put(kSmall, a);
  arena.put(kSmall, b);
  arena->tick(arena.now);
  EXPECT_EQ(arena.class_of(0), kSmall);
  for (int i = 0; i < 4; ++i) arena->tick(arena.now += 300);
  EXPECT_EQ(arena.class_of(0), SizeClass{});
  EXPECT_EQ(arena.class_of(1), SizeClass{});
  EXPECT_EQ(arena.purged(), 2 * kSpan);
  EXPECT_TRUE(arena.check());
}

// A thread that empties and fills its spans again and again keeps them.
TEST(Arena, Tick_SpanUsedBetweenTwoLooks_StaysWithItsClass) {
  Native arena;
  auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::span_of(all[0].word);
  for (int i = 0; i < 10; ++i) {
    arena.put(kSmall, all);
    arena.now += 1000;
    arena->tick(arena.now);
    ASSERT_EQ(arena.class_of(span), kSmall);
    for (const Taken& t : all) arena.take(kSmall, t);
    ASSERT_TRUE(arena.check());
  }
  arena.put(kSmall, all);
  for (int i = 0; i < 2; ++i) arena->tick(arena.now += 1000);
  EXPECT_EQ(arena.class_of(span), SizeClass{}) << "idle at last";
}

TEST(Arena, Tick_PagesFreeAtTwoLooks_AreReturned) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  ArenaSettings settings = small_settings(64 * kMiB);
  Native arena(settings);
  std::vector<Taken> live;
  for (int i = 0; i < 14; ++i) live.push_back(arena.all_but_one(kSmall));  // below the budget, above its half
  ASSERT_TRUE(arena.pages.purges().empty());
  arena->tick(arena.now);
  EXPECT_TRUE(arena.pages.purges().empty()) << "the first look only remembers";
  for (int i = 0; i < 20; ++i) arena->tick(arena.now += 500);
  EXPECT_GT(arena.purged(), 14 * kSpan / 3);
  EXPECT_TRUE(arena.check());
  for (const Taken& t : live) arena.put(kSmall, t);
  EXPECT_TRUE(arena.check());
}

// Slots come back as from threads' caches, several spans' in one batch.
TEST(Arena, Tick_PagesFreedByBatches_AreReturnedOfEverySpan) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  constexpr std::size_t kSpans = 14, kOfEach = 4;  // below the budget, above its half
  Native arena(small_settings(64 * kMiB));
  std::vector<Taken> live;
  std::vector<void*> slots[kSpans];
  for (auto& of_span : slots) {
    for (Taken word : arena.claim_whole(kSmall)) {
      if (of_span.empty()) {  // one stays out
        live.push_back({word.word, word.bits & ~(word.bits - 1)});
        word.bits ^= live.back().bits;
      }
      for (; word.bits != 0; word.bits &= word.bits - 1)
        of_span.push_back(arena.slot(kSmall, word.word, base::lowest_bit(word.bits)));
    }
  }
  for (std::vector<void*> batch;; batch.clear()) {
    for (auto& of_span : slots)
      for (std::size_t i = 0; i < kOfEach && !of_span.empty(); ++i, of_span.pop_back()) batch.push_back(of_span.back());
    if (batch.empty()) break;
    pool::WordIndex last = 0;
    (void)arena->give_slots(kSmall, batch.data(), batch.size(), last, 0);
    if (arena->report_slots(-static_cast<std::int64_t>(batch.size() * Classes::slot_bytes(kSmall))))
      (void)arena->relieve(arena.now);
  }
  EXPECT_TRUE(arena.check());
  for (int i = 0; i < 20; ++i) arena->tick(arena.now += 500);
  std::set<std::size_t> spans;
  for (const auto& purge : arena.pages.purges())
    spans.insert((purge.address - reinterpret_cast<std::uintptr_t>(arena.memory(0))) / kSpan);
  EXPECT_EQ(spans.size(), kSpans) << "pages of each";
  EXPECT_GT(arena.purged(), kSpans * kSpan / 3);
  EXPECT_TRUE(arena.check());
  for (const Taken& t : live) arena.put(kSmall, t);
  EXPECT_TRUE(arena.check());
}

// Every second page is free, so that each takes a call of its own: a step is bounded, and the next one goes on at once.
TEST(Arena, Tick_ManyPagesFreeAtTwoLooks_GoInSteps) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  constexpr std::size_t kSpans = 300 / (kPagesPerSpan / 2) + 1, kPages = kSpans * kPagesPerSpan / 2;
  Native arena(small_settings(128 * kMiB));
  arena->budget().direct(std::int64_t{1} << 40);  // a large program: nothing is too much
  std::vector<Taken> live;
  for (std::size_t i = 0; i < kSpans; ++i) {
    auto all = arena.claim_whole(kSmall);
    for (Taken& word : all) {
      const std::size_t page = pool::word_in_span(word.word) * 64 * Classes::slot_bytes(kSmall) / SmallConfig::kPageBytes;
      if (page % 2 == 0) continue;
      live.push_back({word.word, word.bits & ~(word.bits - 1)});
      word.bits ^= live.back().bits;
    }
    arena.put(kSmall, all);
  }
  arena->budget().direct(-(std::int64_t{1} << 40));  // which is small now
  arena->tick(arena.now);
  ASSERT_TRUE(arena.pages.purges().empty()) << "the first look only remembers";
  arena.now += 1000;
  std::size_t before = 0;
  for (unsigned steps = 0; before < kPages; ++steps) {
    arena->tick(arena.now);
    const std::size_t purges = arena.pages.purges().size();
    ASSERT_GT(purges, before) << "goes on at once, step " << steps;
    EXPECT_LE(purges - before, 128U + kPagesPerSpan / 2);
    before = purges;
  }
  EXPECT_EQ(arena.purged(), kPages * SmallConfig::kPageBytes);
  EXPECT_TRUE(arena.check());
  for (const Taken& t : live) arena.put(kSmall, t);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, PurgeRefused_TriedAgainLaterAndNothingIsLost) {
  Native arena;
  const Taken one = arena.all_but_one(kSmall);
  arena.put(kSmall, arena.claim_whole(kSmall));
  arena.free_run(arena.run(2).first);
  arena.pages.fail_from_now_on(FakePages::kPurge);
  EXPECT_EQ(arena->trim(arena.now), 0U);
  EXPECT_EQ(arena->free_dirty_bytes(), 3 * kSpan);
  EXPECT_TRUE(arena.check());
  for (int i = 0; i < 5; ++i) arena->tick(arena.now += 1000);
  EXPECT_TRUE(arena.check());
  EXPECT_TRUE(arena->something_due());
  arena.pages.heal();
  EXPECT_EQ(arena->trim(arena.now), 3 * kSpan + (kPagesPerSpan - 1) * SmallConfig::kPageBytes)
      << "free pages of a span in use, too";
  EXPECT_TRUE(arena.check());
  arena.put(kSmall, one);
}

// A step is bounded: what is left waits for the next one.
TEST(Arena, Tick_VeryMuchIsDue_GoesInSteps) {
  ArenaSettings settings = small_settings(64 * kMiB);
  Native arena(settings);
  arena->budget().direct(std::int64_t{1} << 40);  // a large program: the budget keeps all of it
  std::vector<SpanIndex> runs;
  for (int i = 0; i < 40; ++i) runs.push_back(arena.run(kChunkSpans).first);
  for (const SpanIndex first : runs) arena.free_run(first);
  EXPECT_EQ(arena->free_dirty_bytes(), 40 * kMiB);
  arena.now += 1000;
  unsigned steps = 0;
  for (; arena->free_dirty_bytes() != 0 && steps < 100; ++steps) {
    const auto before = arena.purged();
    arena->tick(arena.now);
    EXPECT_LE(arena.purged() - before, 17 * kMiB);
    EXPECT_GT(arena.purged(), before) << "goes on at once";
  }
  EXPECT_GE(steps, 3U);
  arena->budget().direct(-(std::int64_t{1} << 40));
  EXPECT_TRUE(arena.check());
}

// ---- trim -------------------------------------------------------------------------------------------------------------

// For every class: half of the slots live, in stretches, so that pages become free in every way. What lives keeps its
// content, every page without a live slot went back, and every slot can still be allocated once.
TEST(Arena, Trim_PartlyFreeSpans_ReturnsTheFreePagesAndKeepsLiveSlots) {
  std::mt19937 random(7);
  for (const SizeClass c : AllClasses<Classes>{}) {
    Native arena;
    const std::size_t bytes = Classes::slot_bytes(c);
    const auto all = arena.claim_whole(c);
    const SpanIndex span = pool::span_of(all[0].word);
    std::vector<std::pair<unsigned, Taken>> live;  // slot number, place
    std::uint32_t slots = 0;
    bool keep = false;
    for (const Taken& word : all)
      for (std::uint64_t bits = word.bits; bits != 0; bits &= bits - 1, ++slots) {
        const unsigned bit = base::lowest_bit(bits);
        std::memset(arena.slot(c, word.word, bit), 0xee, bytes);
        if (random() % std::max<std::uint32_t>(2, static_cast<std::uint32_t>(6000 / bytes)) == 0) keep = !keep;
        const Taken one{word.word, base::bit(bit)};
        if (keep && slots % 7 != 0)
          live.emplace_back(pool::word_in_span(word.word) * 64 + bit, one);
        else
          arena.put(c, one);
      }
    ASSERT_EQ(slots, arena->pool(c).shape().slots);
    std::set<std::size_t> live_pages;
    for (const auto& [number, place] : live)
      for (std::size_t at = number * bytes; at < (number + 1) * bytes; ++at) live_pages.insert(at / SmallConfig::kPageBytes);
    arena->trim(arena.now);
    ASSERT_TRUE(arena.check()) << c.index();
    for (const auto& [number, place] : live) {
      const char* slot = arena.memory(span) + number * bytes;
      ASSERT_EQ(std::count(slot, slot + bytes, '\xee'), static_cast<std::ptrdiff_t>(bytes))
          << "class " << c.index() << ": " << number;
    }
    if (arena->pool(c).free_slots(span) * 4 >= slots && !live.empty())
      for (std::size_t page = 0; page < kSpan / SmallConfig::kPageBytes; ++page)
        if (page * SmallConfig::kPageBytes < slots * bytes) {
          const char* p = arena.memory(span) + page * SmallConfig::kPageBytes;
          EXPECT_EQ(test::all_zero(p, SmallConfig::kPageBytes), live_pages.count(page) == 0)
              << c.index() << " page " << page;
        }
    EXPECT_EQ(arena->trim(arena.now), 0U) << "what is back is not given back again, class " << c.index();
    for (const auto& [number, place] : live) arena.put(c, place);
    EXPECT_TRUE(arena.check());
    (void)arena->trim(arena.now);
    EXPECT_EQ(arena->span_classes()[span].load(), 0U) << "wholly free: nobody's";
  }
}

// Of a chunk that is wholly free and clean, the records of its spans, too.
TEST(Arena, Trim_ChunkIsWhollyFree_ItsSpansRecordsGoBack) {
  Native arena;
  arena.put(kSmall, arena.claim_whole(kSmall));
  (void)arena->trim(arena.now);
  const auto first = reinterpret_cast<std::uintptr_t>(&arena->span(0));
  const auto end = reinterpret_cast<std::uintptr_t>(&arena->span(kChunkSpans));
  if (end - first < SmallConfig::kPageBytes) GTEST_SKIP() << "a page has the records of more than one chunk";
  std::size_t bytes = 0;
  for (const FakePages::Call& call : arena.pages.purges())
    if (call.address >= first && call.address < end) bytes += call.bytes;
  EXPECT_GT(bytes, 0U);
  EXPECT_LE(bytes, end - first);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Trim_PurgedPagesUsedAgain_AreReturnedAgain) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  Native arena;
  const Taken last = arena.all_but_one(kSmall);
  const std::size_t first = arena->trim(arena.now);
  EXPECT_GE(first, kSpan - 2 * SmallConfig::kPageBytes);
  EXPECT_EQ(arena->budget().figures().returned, static_cast<std::int64_t>(first));
  pool::Cursor cursor;
  const Taken t = arena->take_slots(kSmall, cursor, 64, 1, 0);
  arena.report(kSmall, t.bits, 1);
  EXPECT_EQ(arena->budget().figures().returned, 0);
  EXPECT_TRUE(arena.check());
  arena.put(kSmall, t);
  EXPECT_EQ(arena->trim(arena.now), first) << "what is known of the span's pages is forgotten when one is used";
  arena.put(kSmall, last);
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Trim_Everything_LeavesNoDirtyPageAndExactAccounts) {
  Native arena;
  std::vector<SpanIndex> runs;
  for (unsigned i = 1; i <= 10; ++i) {
    runs.push_back(arena.run(i).first);
    std::memset(arena.memory(runs.back()), 1, i * kSpan);
    arena.put(SizeClass{1 + i}, arena.claim_whole(SizeClass{1 + i}));
  }
  for (const SpanIndex first : runs) arena.free_run(first);
  EXPECT_TRUE(arena.check());
  EXPECT_GT(arena->trim(arena.now), 0U);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  arena->for_each_span([&](SpanIndex i, SizeClass c) {
    EXPECT_EQ(c, SizeClass{});
    EXPECT_TRUE(arena.zero(i, 1)) << i;
  });
  EXPECT_EQ(arena->trim(arena.now), 0U) << "what is back is not given back again";
}

// ---- huge pages -------------------------------------------------------------------------------------------------------

[[nodiscard]] std::vector<std::pair<SpanIndex, bool>> advice(Native& arena) {
  std::vector<std::pair<SpanIndex, bool>> calls;
  for (const auto& call : arena.pages.huge_advice())
    calls.emplace_back(static_cast<SpanIndex>((call.address - arena->base()) / kSpan), call.wanted);
  return calls;
}

TEST(Arena, HugePages_Auto_OnceTheHeapOfSlotsIsNotSmall) {
  ArenaSettings settings = small_settings();
  settings.huge_pages = HugePages::kAuto;
  Native arena(settings);
  for (unsigned i = 0; i < 2 * kChunkSpans; ++i) ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  EXPECT_EQ(advice(arena), (std::vector<std::pair<SpanIndex, bool>>{{0, false}, {kChunkSpans, true}}));
  arena.pages.forget_log();
  for (unsigned i = 0; i < 3 * kChunkSpans; ++i) ASSERT_NE(arena.run(1).first, kNoSpan);
  ASSERT_EQ(arena.pages.huge_advice().size(), 1U) << "the first chunk of runs; the others as the system likes";
  EXPECT_FALSE(arena.pages.huge_advice()[0].wanted);
}

TEST(Arena, HugePages_OffForEveryChunk_OnForSmallClasses) {
  for (const bool on : {false, true}) {
    ArenaSettings settings = small_settings();
    settings.huge_pages = on ? HugePages::kOn : HugePages::kOff;
    Native arena(settings);
    for (unsigned i = 0; i < 2 * kChunkSpans; ++i) {
      ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
      ASSERT_NE(arena.run(1).first, kNoSpan);
    }
    ASSERT_EQ(arena.pages.huge_advice().size(), on ? 2U : 4U);
    for (const auto& call : arena.pages.huge_advice()) {
      EXPECT_EQ(call.wanted, on);
      EXPECT_EQ(call.bytes, kChunk);
    }
  }
}

// The system's collector of huge pages would fill again what went back in part.
TEST(Arena, HugePages_PartlyPurged_AreForbiddenOnceForAll) {
  ArenaSettings settings = small_settings();
  settings.huge_pages = HugePages::kAuto;
  Native arena(settings);
  std::vector<std::vector<Taken>> spans;
  for (unsigned i = 0; i < 2 * kChunkSpans; ++i) spans.push_back(arena.claim_whole(kSmall));
  arena.pages.forget_log();
  arena.put(kSmall, spans[3]);
  (void)arena->trim(arena.now);
  ASSERT_EQ(arena.pages.huge_advice().size(), 1U);
  EXPECT_FALSE(arena.pages.huge_advice()[0].wanted);
  EXPECT_EQ(arena.pages.huge_advice()[0].address, arena->base());
  EXPECT_EQ(arena.pages.huge_advice()[0].bytes, arena->span_count() * kSpan);
  arena.put(kSmall, spans[5]);
  (void)arena->trim(arena.now);
  EXPECT_EQ(arena.pages.huge_advice().size(), 1U) << "once is enough";
  EXPECT_TRUE(arena.check());
}

TEST(Arena, HugePages_On_AreNeverForbidden) {
  ArenaSettings settings = small_settings();
  settings.huge_pages = HugePages::kOn;
  Native arena(settings);
  arena.put(kSmall, arena.claim_whole(kSmall));
  (void)arena->trim(arena.now);
  for (const auto& call : arena.pages.huge_advice()) EXPECT_TRUE(call.wanted);
}

// A chunk that went back as a whole is as good as new.
TEST(Arena, HugePages_ChunkThatIsWhollyClean_GetsThemAgain) {
  ArenaSettings settings = small_settings();
  settings.huge_pages = HugePages::kAuto;
  Native arena(settings);
  std::vector<std::vector<Taken>> spans;
  for (unsigned i = 0; i < 2 * kChunkSpans; ++i) spans.push_back(arena.claim_whole(kSmall));
  for (const auto& all : spans) arena.put(kSmall, all);
  (void)arena->trim(arena.now);
  ASSERT_EQ(arena->free_dirty_bytes(), 0U);
  arena.pages.forget_log();
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  ASSERT_EQ(arena.pages.huge_advice().size(), 1U);
  EXPECT_TRUE(arena.pages.huge_advice()[0].wanted);
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  EXPECT_EQ(arena.pages.huge_advice().size(), 1U) << "at its first span only";
  EXPECT_TRUE(arena.check());
}

TEST(Arena, Prefault_NewChunksGetTheirPages) {
  ArenaSettings settings = small_settings();
  settings.prefault = true;
  Native arena(settings);
  ASSERT_NE(arena.run(3).first, kNoSpan);
  ASSERT_EQ(arena.pages.populated().size(), 1U);
  EXPECT_EQ(arena.pages.populated()[0].address, arena->base());
  EXPECT_EQ(arena.pages.populated()[0].bytes, kChunk);
}

TEST(Arena, Prefault_ChunkThatIsCleanAgain_IsNotPopulated) {
  ArenaSettings settings = small_settings();
  settings.prefault = true;
  settings.huge_pages = HugePages::kAuto;
  Native arena(settings);
  const auto all = arena.claim_whole(kSmall);
  ASSERT_FALSE(all.empty());
  arena.put(kSmall, all);
  (void)arena->trim(arena.now);
  ASSERT_EQ(arena->free_dirty_bytes(), 0U);
  const std::size_t populated = arena.pages.populated().size();
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  EXPECT_EQ(arena.pages.populated().size(), populated) << "the account says that it holds no pages";
}

// ---- the limit --------------------------------------------------------------------------------------------------------

TEST(Arena, Limit_IsNotExceededAndWhatIsFreedServesAgain) {
  ArenaSettings settings = small_settings(64 * kMiB);
  settings.limit_bytes = 8 * kMiB;
  Native arena(settings);
  EXPECT_EQ(arena->limit(), 8 * kMiB);
  for (int round = 0; round < 5; ++round) {
    std::vector<SpanIndex> runs;
    for (RunPlace place = arena.run(4); place.first != kNoSpan; place = arena.run(4)) runs.push_back(place.first);
    EXPECT_EQ(runs.size(), 8 * kMiB / (4 * kSpan)) << "to the byte";
    EXPECT_EQ(arena.claim_span(kSmall), kNoSpan);
    EXPECT_TRUE(arena.check());
    for (const SpanIndex first : runs) arena.free_run(first);
    std::vector<std::vector<Taken>> spans;
    for (auto all = arena.claim_whole(kSmall); !all.empty(); all = arena.claim_whole(kSmall)) spans.push_back(all);
    EXPECT_EQ(spans.size(), 8 * kMiB / kSpan);
    EXPECT_EQ(arena.run(1).first, kNoSpan);
    EXPECT_TRUE(arena.check());
    for (const auto& all : spans) arena.put(kSmall, all);
  }
}

// Runs whose spans are partly warm: the warm ones count, too.
TEST(Arena, Limit_PartlyDirtyRuns_CountAsWhole) {
  ArenaSettings settings = small_settings(64 * kMiB);
  settings.limit_bytes = 8 * kMiB;
  Native arena(settings);
  std::mt19937 random(8);
  std::vector<std::pair<SpanIndex, unsigned>> runs;
  std::uint64_t used = 0;
  for (int step = 0; step < 4000; ++step) {
    const unsigned n = 1 + random() % kChunkSpans;
    if (random() % 2 == 0) {
      const RunPlace place = arena.run(n);
      if (place.first == kNoSpan) continue;
      runs.emplace_back(place.first, n);
      used += n * kSpan;
    } else if (!runs.empty()) {
      std::swap(runs[random() % runs.size()], runs.back());
      auto& [first, old] = runs.back();
      if (random() % 3 == 0 && arena.resize(first, n)) {
        used += (std::uint64_t{n} - old) * kSpan;
        old = n;
      } else {
        arena.free_run(first);
        used -= old * kSpan;
        runs.pop_back();
      }
    }
    ASSERT_LE(used + arena->free_dirty_bytes(), 8 * kMiB) << step;
    ASSERT_TRUE(step % 50 != 0 || arena.check()) << step;
  }
}

TEST(Arena, Admit_FreesWhatIsFreeFirst) {
  ArenaSettings settings = small_settings();
  Native arena(settings);
  std::vector<SpanIndex> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(arena.run(kChunkSpans).first);
  EXPECT_TRUE(arena->admit(std::uint64_t{1} << 60, arena.now)) << "no limit";
  arena->set_limit(5 * kMiB);
  EXPECT_TRUE(arena->admit(kMiB, arena.now));
  EXPECT_FALSE(arena->admit(kMiB + 1, arena.now));
  arena.free_run(runs[0]);
  EXPECT_TRUE(arena->admit(2 * kMiB, arena.now));
  EXPECT_EQ(arena.purged(), kMiB);
  EXPECT_FALSE(arena->admit(2 * kMiB + 1, arena.now));
  EXPECT_FALSE(arena->admit(~std::uint64_t{0}, arena.now)) << "no sum may wrap";
  EXPECT_FALSE(arena->admit(std::uint64_t{1} << 63, arena.now));
  EXPECT_TRUE(arena.check());
}

// ---- another thread at any moment -------------------------------------------------------------------------------------

// A chunk is wholly free and clean, so that the records of its spans go back: but another thread has just got one of them.
TEST(Arena, Trim_SpanClaimedMeanwhile_IsItsClaimants) {
  const unsigned moments = test::at_every_moment([](unsigned moment, unsigned& changes) {
    Hooked arena;
    arena.put(kSmall, arena.claim_whole(kSmall));
    Taken theirs{};
    test::HookedAtomics::interrupt_at(moment, changes, [&] { theirs = arena.claim(kSmall, 64); });
    (void)arena->trim(arena.now);
    test::HookedAtomics::hook = nullptr;
    if (changes < moment) return;
    EXPECT_NE(theirs.bits, 0U);
    EXPECT_EQ(arena.class_of(pool::span_of(theirs.word)), kSmall) << moment;
    EXPECT_TRUE(arena.check()) << moment;
    for (int i = 0; i < 20; ++i) EXPECT_NE(arena.run(1).first, pool::span_of(theirs.word)) << moment;
    arena.put(kSmall, theirs);
    EXPECT_TRUE(arena.check()) << moment;
  });
  EXPECT_GT(moments, 1U);
}

// Slots whose pages are just given back are taken by another thread as soon as it can: their pages count as resident.
TEST(Arena, Trim_SlotsOfItsPagesTakenMeanwhile_ThePagesCount) {
  const unsigned moments = test::at_every_moment([](unsigned moment, unsigned& changes) {
    Hooked arena;
    const Taken one = arena.all_but_one(kSmall);
    const pool::WordIndex word = pool::word_index(pool::span_of(one.word), 5);  // a page
    Taken theirs{};
    test::HookedAtomics::interrupt_at(moment, changes, [&] {
      if (!arena->pool(kSmall).take_exactly(word, ~std::uint64_t{0})) return;
      theirs = {word, ~std::uint64_t{0}};
      arena->note_taken(pool::span_of(word));
      arena.report(kSmall, theirs.bits, 1);
    });
    (void)arena->trim(arena.now);
    test::HookedAtomics::hook = nullptr;
    if (changes < moment) return;
    if (theirs.bits != 0) {
      const auto place = static_cast<std::size_t>(arena.slot(kSmall, theirs.word, base::lowest_bit(theirs.bits)) -
                                                  arena.memory(pool::span_of(theirs.word)));
      EXPECT_EQ(arena->span(pool::span_of(theirs.word)).page_hints.load() >> (place / SmallConfig::kPageBytes) & 1, 0U)
          << "in use, and counted as given back, at moment " << moment;
      EXPECT_TRUE(arena.check()) << moment;
      arena.put(kSmall, theirs);
    }
    arena.put(kSmall, one);
    EXPECT_TRUE(arena.check()) << moment;
  });
  EXPECT_GT(moments, 1U);
}

// Memory that becomes free while the purger looks: either it finds it, or the note of it stays.
TEST(Arena, PurgeIdle_FreedMeanwhile_TheNoteStays) {
  const unsigned moments = test::at_every_moment([](unsigned moment, unsigned& changes) {
    Hooked arena;
    const RunPlace run = arena.run(3);
    test::HookedAtomics::interrupt_at(moment, changes, [&] { arena.free_run(run.first); });
    (void)arena->purge_idle(arena.now += 10'000);
    test::HookedAtomics::hook = nullptr;
    if (changes >= moment) {
      EXPECT_TRUE(arena->free_dirty_bytes() == 0 || arena->something_due()) << moment;
    }
  });
  EXPECT_GT(moments, 1U);
}

// Of two threads that free one run at the same time one is told so.
TEST(Arena, FreeRun_ByTwoAtTheSameTime_OneOfThemDoes) {
  const unsigned moments = test::at_every_moment([](unsigned moment, unsigned& changes) {
    Hooked arena;
    const RunPlace run = arena.run(3);
    bool theirs = false;
    test::HookedAtomics::interrupt_at(moment, changes, [&] { theirs = arena->free_run(run.first, arena.now); });
    const bool mine = arena->free_run(run.first, arena.now);
    test::HookedAtomics::hook = nullptr;
    if (changes >= moment) {
      EXPECT_NE(mine, theirs) << moment;
      EXPECT_EQ(arena->free_dirty_bytes(), 3 * kSpan) << moment;
      EXPECT_TRUE(arena.check()) << moment;
    }
  });
  EXPECT_GT(moments, 1U);
}

// What an address is tested against grows before a block beyond it can be had.
struct ToldConfig : SmallConfig {
  static inline std::function<void(std::size_t)> told;
  static void note_span_count(std::size_t count) {
    if (told) told(count);
  }
};
TEST(Arena, Grow_CountIsToldBeforeTheChunkCanBeHad) {
  using Type = Arena<sync::NativeAtomics, ToldConfig, FakePages>;
  FakePages pages;
  const auto arena = std::make_unique<Type>();
  ASSERT_TRUE(arena->init(pages, small_settings()));
  std::vector<std::size_t> counts;
  ToldConfig::told = [&](std::size_t count) {
    counts.push_back(count);
    EXPECT_EQ(arena->span_count(), count);
    typename Type::Runs kept;
    auto& word = kept.add();
    word.set_chunk(static_cast<std::uint32_t>(count / kChunkSpans) - 1);
    EXPECT_FALSE(arena->reserve(word)) << "spans of a chunk that is not told of";
  };
  for (unsigned i = 0; i < 3; ++i) EXPECT_NE(arena->allocate_run(kChunkSpans * kSpanPages, 1, 1).first, kNoSpan);
  ToldConfig::told = nullptr;
  EXPECT_EQ(counts, (std::vector<std::size_t>{kChunkSpans, 2 * kChunkSpans, 3 * kChunkSpans}));
}

// ---- an empty span is noticed -----------------------------------------------------------------------------------------

// The reclaiming thread holds some words, gives up, and puts them back; the word that was missing comes back meanwhile.
TEST(Arena, Reclaim_MissingWordComesBackMeanwhile_TheEmptySpanIsNoticed) {
  Hooked arena;
  const auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::span_of(all[0].word);
  arena.put(kSmall, all);
  auto& last = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(
      *arena->word_address(pool::word_index(span, arena->pool(kSmall).shape().words() - 1)));
  bool came_back = false;
  // Just before the reclaimer takes the last word, a searcher does; just before the reclaimer puts the first one back, the
  // searcher returns its.
  test::HookedAtomics::interrupt_before_change_of(&last, [&] {
    pool::Cursor cursor{pool::word_index(span, arena->pool(kSmall).shape().words() - 1), pool::Cursor::kNoSpan};
    const Taken theirs = arena->take_slots(kSmall, cursor, 64, 9, 0);
    ASSERT_NE(theirs.bits, 0U);
    arena.report(kSmall, theirs.bits, 1);
    auto& first = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(*arena->word_address(pool::word_index(span, 0)));
    test::HookedAtomics::interrupt_before_change_of(&first, [&arena, &came_back, theirs] {
      arena.put(kSmall, theirs);
      came_back = true;
    });
  });
  (void)arena->trim(arena.now);
  test::HookedAtomics::hook = nullptr;
  EXPECT_TRUE(came_back);
  EXPECT_EQ(arena.class_of(span), SizeClass{}) << "wholly free, and nobody knows";
  EXPECT_TRUE(arena.check());
}

// The purger holds the slots of the free pages; the rest of the span is freed meanwhile.
TEST(Arena, Purge_RestOfTheSpanIsFreedMeanwhile_TheEmptySpanIsNoticed) {
  if (kPagesPerSpan == 1) GTEST_SKIP() << "a span is one page";
  Hooked arena;
  auto all = arena.claim_whole(kSmall);
  const SpanIndex span = pool::span_of(all[0].word);
  const Taken last = all.back();
  all.pop_back();
  arena.put(kSmall, all);
  bool freed = false;
  test::HookedAtomics::interrupt_before_change_of(&arena->span(span).page_hints, [&] {
    arena.put(kSmall, last);
    freed = true;
  });
  (void)arena->trim(arena.now);
  test::HookedAtomics::hook = nullptr;
  EXPECT_TRUE(freed);
  EXPECT_EQ(arena.class_of(span), SizeClass{}) << "wholly free, and nobody knows";
  EXPECT_TRUE(arena.check());
}

// A searcher of the span's former class holds a word of it for a moment; the rest is freed meanwhile.
TEST(Arena, Searcher_OfTheFormerClassHoldsTheLastWord_TheEmptySpanIsNoticed) {
  Hooked arena;
  const auto all = arena.claim_whole(kOneWord);
  const SpanIndex span = pool::span_of(all[0].word);
  arena.put(kOneWord, all);
  auto& word = const_cast<test::HookedAtomics::atomic<std::uint64_t>&>(*arena->word_address(pool::word_index(span, 0)));
  // Before it takes the word, the span goes to another class, where all but one of its words are free again. Before he
  // gives it back, that one is freed, too.
  test::HookedAtomics::interrupt_before_change_of(&word, [&] {
    auto theirs = arena.claim_whole(kSmall);
    ASSERT_EQ(pool::span_of(theirs[0].word), span);
    const Taken last = theirs.back();
    theirs.pop_back();
    arena.put(kSmall, theirs);
    test::HookedAtomics::interrupt_before_change_of(&word, [&arena, last] { arena.put(kSmall, last); });
  });
  pool::Cursor cursor{pool::word_index(span, 0), pool::Cursor::kNoSpan};
  EXPECT_EQ(arena->take_slots(kOneWord, cursor, 64, 9, 0).bits, 0U);
  EXPECT_EQ(arena->pool(kSmall).free_slots(span), arena->pool(kSmall).shape().slots);
  EXPECT_TRUE(arena.check()) << "wholly free, and nobody knows";
}

// ---- everything at random ---------------------------------------------------------------------------------------------

TEST(Arena, RandomLife_InvariantsAndAccountsHoldAfterEveryStep) {
  for (const bool limited : {false, true}) {
    std::mt19937 random(42);
    ArenaSettings settings = small_settings(8 * kMiB);
    settings.limit_bytes = limited ? 5 * kMiB : 0;
    Native arena(settings);
    std::vector<std::pair<SizeClass, std::vector<Taken>>> spans;
    std::vector<RunPlace> runs;
    for (int step = 0; step < 6000; ++step) {
      arena.now += random() % 50;
      if (random() % 200 == 0) arena.pages.fail(1 + random() % 4, random() % 8);
      switch (random() % 10) {
        case 0:
        case 1: {
          const SizeClass c{static_cast<std::uint32_t>(1 + random() % (Classes::kCount - 1))};
          auto all = arena.claim_whole(c);
          if (all.empty()) break;
          for (const Taken& t : all) std::memset(arena.slot(c, t.word, base::lowest_bit(t.bits)), 3, 16);
          spans.emplace_back(c, std::move(all));
          break;
        }
        case 2:
        case 3:  // a word of a span, or what is left of it
          if (!spans.empty()) {
            std::swap(spans[random() % spans.size()], spans.back());
            auto& [c, all] = spans.back();
            for (std::size_t n = random() % 2 == 0 ? all.size() : 1 + random() % all.size(); n != 0; --n) {
              arena.put(c, all.back());
              all.pop_back();
            }
            if (all.empty()) spans.pop_back();
          }
          break;
        case 4:
        case 5: {
          const unsigned n = 1 + random() % 9;
          const RunPlace place = arena.run(n, SpanIndex{1} << random() % 4);
          if (place.first == kNoSpan) break;
          ASSERT_TRUE(!place.zero || arena.zero(place.first, n)) << "a wrong claim in step " << step;
          for (unsigned i = 0; i < n; ++i) std::memset(arena.memory(place.first + i) + random() % 60'000, 3, 64);
          runs.push_back(place);
          break;
        }
        case 6:
          if (!runs.empty()) {
            std::swap(runs[random() % runs.size()], runs.back());
            arena.free_run(runs.back().first);
            runs.pop_back();
          }
          break;
        case 7:
          if (!runs.empty()) {
            const SpanIndex first = runs[random() % runs.size()].first;
            if (arena.resize(first, 1 + random() % 12)) {
              const SpanIndex last = first + arena->run_pages(first) / kSpanPages - 1;
              std::memset(arena.memory(last) + 100, 3, 64);
            }
          }
          break;
        case 8:  // a thread finds slots of spans in use
          if (!spans.empty()) {
            const SizeClass c = spans[random() % spans.size()].first;
            pool::Cursor cursor;
            const Taken t = arena->take_slots(c, cursor, 64, 1, 0);
            if (t.bits == 0) break;
            arena.report(c, t.bits, 1);
            spans.emplace_back(c, std::vector<Taken>{t});
          }
          break;
        default:
          if (random() % 8 == 0)
            (void)arena->trim(arena.now);
          else
            arena->tick(arena.now);
      }
      ASSERT_TRUE(arena->check_invariants()) << step;
      ASSERT_TRUE(arena->check_accounts({})) << step;
    }
    arena.pages.heal();
    for (auto& [c, all] : spans) arena.put(c, all);
    for (const RunPlace& place : runs) arena.free_run(place.first);
    (void)arena->trim(arena.now);
    ASSERT_TRUE(arena.check());
    EXPECT_EQ(arena->free_dirty_bytes(), 0U);
    arena->for_each_span([&](SpanIndex i, SizeClass c) { EXPECT_FALSE(c.is_slot()) << i; });
    arena->set_limit(0);
    std::size_t spans_left = 0;
    for (RunPlace place = arena.run(1); place.first != kNoSpan; place = arena.run(1), ++spans_left)
      EXPECT_TRUE(place.zero && arena.zero(place.first, 1)) << place.first;
    EXPECT_EQ(spans_left, 8 * kMiB / kSpan) << "nothing is lost";
    EXPECT_TRUE(arena.check());
  }
}

// Threads that claim, take, give, run and purge at once.
TEST(Arena, Threads_NothingIsLostAndAccountsAddUp) {
  Native arena(small_settings(16 * kMiB));
  std::atomic<bool> wrong{false};
  const auto work = [&](unsigned me) {
    std::mt19937 random(me);
    std::vector<std::pair<SizeClass, Taken>> slots;
    std::vector<std::pair<SpanIndex, unsigned>> runs;
    const auto report = [&](SizeClass c, const Taken& t, int sign, std::uint64_t now) {
      if (arena->report_slots(
              sign * static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(t.bits)) * Classes::slot_bytes(c))))
        (void)arena->relieve(now);
    };
    const auto stamp = [&](char* at) { std::memset(at, static_cast<int>(me), 16); };
    const auto stamped = [&](const char* at) { return at[0] == static_cast<char>(me) && at[15] == at[0]; };
    for (int step = 0; step < 12'000; ++step) {
      const std::uint64_t now = 1'000'000 + static_cast<std::uint64_t>(step) / 4;
      const unsigned what = random() % 12;
      if (what < 4 && slots.size() < 200) {
        const SizeClass c = random() % 2 == 0 ? kSmall : random() % 2 == 0 ? kOneWord : kBig;
        pool::Cursor cursor;
        Taken t = arena->take_slots(c, cursor, 64, me, 2);
        if (t.bits == 0) t = arena->claim(c, 64, me, now);
        if (t.bits == 0) continue;
        report(c, t, 1, now);
        stamp(arena.slot(c, t.word, base::lowest_bit(t.bits)));
        slots.emplace_back(c, t);
      } else if (what < 8 && !slots.empty()) {
        std::swap(slots[random() % slots.size()], slots.back());
        const auto [c, t] = slots.back();
        slots.pop_back();
        if (!stamped(arena.slot(c, t.word, base::lowest_bit(t.bits)))) wrong = true;
        if (arena->give_slots(c, t) != 0) wrong = true;
        report(c, t, -1, now);
      } else if (what == 8 && runs.size() < 8) {
        const unsigned n = 1 + random() % 6;
        const RunPlace place = arena->allocate_run(n * kSpanPages, 1, now);
        if (place.first == kNoSpan) continue;
        for (unsigned i = 0; i < n; ++i) {
          if (place.zero && !test::all_zero(arena.memory(place.first + i), 64)) wrong = true;
          stamp(arena.memory(place.first + i));
        }
        runs.emplace_back(place.first, n);
      } else if (what == 9 && !runs.empty()) {
        auto& [first, n] = runs.back();
        if (arena->resize_run(first, (n + 1) * kSpanPages, now)) stamp(arena.memory(first + n++));
      } else if (what == 10 && !runs.empty()) {
        const auto [first, n] = runs.back();
        runs.pop_back();
        for (unsigned i = 0; i < n; ++i)
          if (!stamped(arena.memory(first + i))) wrong = true;
        if (!arena->free_run(first, now)) wrong = true;
      } else if (step % 256 == 0) {
        (void)arena->trim(now);
      } else {
        arena->tick(now);
      }
    }
    for (const auto& [c, t] : slots) {
      if (arena->give_slots(c, t) != 0) wrong = true;
      report(c, t, -1, 0);
    }
    for (const auto& [first, n] : runs)
      if (!arena->free_run(first, 0)) wrong = true;
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= 4; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(arena.check());
  (void)arena->trim(arena.now + 100'000);
  EXPECT_TRUE(arena.check());
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  std::size_t spans = 0;
  for (; arena.run(1).first != kNoSpan; ++spans) {
  }
  EXPECT_EQ(spans, 16 * kMiB / kSpan);
}

}  // namespace
}  // namespace freehold::alloc
