// SPDX-License-Identifier: MIT
#include "freehold/alloc/spans/arena.hpp"
#include "tests/support/test.hpp"
#include "tests/unit/alloc/support.hpp"
#include "tests/unit/hooked_atomics.hpp"

namespace freehold::alloc {
namespace {

using test::FakePages;
using test::kChunk;
using test::kSpan;
using test::small_settings;
using test::SmallConfig;
using Classes = SizeClasses;
using pool::Taken;

constexpr unsigned kChunkSpans = SmallConfig::kChunkSpans;
const auto kSpanPages = static_cast<unsigned>(test::kPagesPerSpan);
constexpr std::size_t kMiB = std::size_t{1} << 20;

template <class A>
class TestArena {
 public:
  using Type = Arena<A, SmallConfig, FakePages>;

  explicit TestArena(const ArenaSettings& settings = small_settings()) : arena_(std::make_unique<Type>()) {
    EXPECT_TRUE(arena_->init(pages, settings));
  }
  Type& operator*() { return *arena_; }
  Type* operator->() { return arena_.get(); }

  [[nodiscard]] char* slot(SizeClass c, pool::WordIndex index, unsigned bit) {
    return reinterpret_cast<char*>(arena_->geometry(c).address(index, bit));
  }
  // Reports slots as caches do, at once.
  void report(SizeClass c, std::uint64_t bits, int sign) {
    if (arena_->report_slots(sign *
                             static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(bits)) * Classes::slot_bytes(c))))
      (void)arena_->purge().relieve(now);
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
      const std::uint64_t bits = arena_->words_of(c)[index].load(std::memory_order_relaxed);
      if (bits == 0) continue;
      take(c, {index, bits});
      all.push_back({index, bits});
    }
    return all;
  }
  void take(SizeClass c, const Taken& t) {
    EXPECT_TRUE(arena_->pool(c).take_exactly(t.word, t.bits));
    arena_->slots().note_taken(pool::span_of(t.word));
    report(c, t.bits, 1);
  }
  void put(SizeClass c, const Taken& t) {
    EXPECT_EQ(arena_->slots().give_slots(c, t), 0U);
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
    return arena_->runs().allocate_run(spans * kSpanPages, alignment, now);
  }
  [[nodiscard]] bool resize(SpanIndex first, SpanIndex spans) {
    return arena_->runs().resize_run(first, spans * kSpanPages, now);
  }
  void free_run(SpanIndex first) { EXPECT_TRUE(arena_->runs().free_run(first, now)); }
  [[nodiscard]] char* memory(SpanIndex i) { return reinterpret_cast<char*>(arena_->address(i)); }
  [[nodiscard]] bool zero(SpanIndex first, std::size_t spans) { return test::all_zero(memory(first), spans * kSpan); }
  [[nodiscard]] SizeClass class_of(SpanIndex i) { return arena_->class_of_span(i); }
  [[nodiscard]] bool check() { return arena_->check_invariants() && arena_->check_accounts({}); }

  FakePages pages;
  std::uint64_t now = 1'000'000;

 private:
  std::unique_ptr<Type> arena_;
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

// ---- growing ----------------------------------------------------------------------------------------------------------

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
  (void)arena->purge().trim(arena.now);
  EXPECT_TRUE(arena.check());
  for (const unsigned chunk : {2U, 5U}) {
    char* const place = arena.memory(chunk * kChunkSpans) + 3 * kSpan;
    EXPECT_EQ(std::count(place, place + kSpan, 77), static_cast<std::ptrdiff_t>(kSpan));
    os::Pages::release(place, kSpan);
  }
}

// ---- giving back by the budget ----------------------------------------------------------------------------------------

// Regret that ends leaves more wholly free spans than one step can look at: those that wait for the next can go back, too.
TEST(Arena, MoreEmptySpansThanAStepReclaims_AllThatIsTooMuchGoesBack) {
  constexpr std::size_t kSpans = 2000;
  Native arena(small_settings(256 * kMiB));
  std::vector<std::vector<Taken>> spans;
  for (std::size_t i = 0; i < kSpans; ++i) spans.push_back(arena.claim_whole(kOneWord));
  const auto& budget = arena->budget();
  arena->budget().set_purged_in_time(true);
  arena->budget().regret(static_cast<std::int64_t>(kSpans * kSpan), arena.now);
  for (const auto& span : spans) arena.put(kOneWord, span);
  ASSERT_GE(budget.figures().class_spans, static_cast<std::int64_t>(kSpans * kSpan / 2)) << "regretted";
  arena->budget().set_purged_in_time(false);  // as in a child of a fork
  for (int i = 0; i < 20; ++i) (void)arena->purge().relieve(arena.now);
  const auto now = budget.figures();
  EXPECT_LE(now.class_spans - now.live + now.dirty, budget.allowance() + static_cast<std::int64_t>(kChunk));
}

// ---- giving back by the delay -----------------------------------------------------------------------------------------

TEST(Arena, Tick_BeforeTheDelay_KeepsAfterIt_Purges) {
  Native arena;
  const RunPlace run = arena.run(2);
  arena.free_run(run.first);
  EXPECT_TRUE(arena->due().something());
  arena->purge().tick(arena.now);
  arena.now += 499;
  arena->purge().tick(arena.now);
  EXPECT_TRUE(arena.pages.purges().empty());
  EXPECT_EQ(arena->free_dirty_bytes(), 2 * kSpan);
  arena.now += 201;
  arena->purge().tick(arena.now);
  EXPECT_EQ(arena->free_dirty_bytes(), 0U);
  ASSERT_EQ(arena.pages.purges().size(), 1U) << "neighbouring spans go in one call";
  EXPECT_EQ(arena->counters().purged_bytes, 2 * kSpan);
  EXPECT_TRUE(arena.check());
  for (int i = 0; i < 3; ++i) arena->purge().tick(arena.now += 1000);
  EXPECT_FALSE(arena->due().something()) << "nothing waits any more";
  EXPECT_EQ(arena.pages.purges().size(), 1U) << "what is back is not given back again";
}

// On a machine that has run for 25 days: a span that was given back by a look is as old as its chunk's last free, or never
// had one.
TEST(Arena, Tick_TimesAreFarApart_WhollyFreeSpansGoBack) {
  for (const std::uint64_t age : {std::uint64_t{1}, std::uint64_t{25}, std::uint64_t{49}}) {
    Native arena;
    arena.now = age * 86'400'000;
    arena.put(kOneWord, arena.claim_whole(kOneWord));
    for (int i = 0; i < 4; ++i) arena->purge().tick(arena.now += 1000);
    EXPECT_EQ(arena->free_dirty_bytes(), 0U) << age << " days";
    EXPECT_EQ(arena->counters().purged_bytes, kSpan) << age << " days";
  }
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
      for (std::size_t at = number * bytes; at < (number + 1) * bytes; ++at)
        live_pages.insert(at / SmallConfig::page_bytes());
    arena->purge().trim(arena.now);
    ASSERT_TRUE(arena.check()) << c.index();
    for (const auto& [number, place] : live) {
      const char* slot = arena.memory(span) + number * bytes;
      ASSERT_EQ(std::count(slot, slot + bytes, '\xee'), static_cast<std::ptrdiff_t>(bytes))
          << "class " << c.index() << ": " << number;
    }
    if (arena->pool(c).free_slots(span) * 4 >= slots && !live.empty())
      for (std::size_t page = 0; page < kSpan / SmallConfig::page_bytes(); ++page)
        if (page * SmallConfig::page_bytes() < slots * bytes) {
          const char* p = arena.memory(span) + page * SmallConfig::page_bytes();
          EXPECT_EQ(test::all_zero(p, SmallConfig::page_bytes()), live_pages.count(page) == 0)
              << c.index() << " page " << page;
        }
    EXPECT_EQ(arena->purge().trim(arena.now), 0U) << "what is back is not given back again, class " << c.index();
    for (const auto& [number, place] : live) arena.put(c, place);
    EXPECT_TRUE(arena.check());
    (void)arena->purge().trim(arena.now);
    EXPECT_EQ(arena->span_classes()[span].load(), 0U) << "wholly free: of no class";
  }
}

// ---- huge pages -------------------------------------------------------------------------------------------------------

[[nodiscard]] ArenaSettings with_huge_pages() {
  ArenaSettings settings = small_settings();
  settings.huge_pages = HugePages::kAuto;
  return settings;
}
// Whole spans of small slots in use, so many chunks of them; forgets what that asked of the system.
[[nodiscard]] std::vector<std::vector<Taken>> fill_chunks(Native& arena, unsigned chunks) {
  std::vector<std::vector<Taken>> spans;
  for (unsigned i = 0; i < chunks * kChunkSpans; ++i) spans.push_back(arena.claim_whole(kSmall));
  arena.pages.forget_log();
  return spans;
}

[[nodiscard]] std::vector<std::pair<SpanIndex, bool>> advice(Native& arena) {
  std::vector<std::pair<SpanIndex, bool>> calls;
  for (const auto& call : arena.pages.huge_advice())
    calls.emplace_back(static_cast<SpanIndex>((call.address - arena->base()) / kSpan), call.wanted);
  return calls;
}

TEST(Arena, HugePages_Auto_OnceTheHeapOfSlotsIsNotSmall) {
  Native arena(with_huge_pages());
  ASSERT_NE(arena.run(1).first, kNoSpan);
  for (unsigned i = 0; i < 2 * kChunkSpans; ++i) ASSERT_FALSE(arena.claim_whole(kSmall).empty());
  using Advice = std::vector<std::pair<SpanIndex, bool>>;
  EXPECT_EQ(advice(arena), (Advice{{0, false}, {kChunkSpans, false}, {2 * kChunkSpans, true}}));
  arena.pages.forget_log();
  for (unsigned i = 0; i < 3 * kChunkSpans; ++i) ASSERT_NE(arena.run(1).first, kNoSpan);
  EXPECT_EQ(advice(arena), Advice{}) << "runs as the system likes, except the first chunk of a small program";
}

// Each CPU has a chunk: a program that uses little in each stays small.
TEST(Arena, HugePages_Auto_LittleInEachOfManyChunks_None) {
  Native arena(with_huge_pages());
  arena->free_spans().expect_threads(8);
  for (AtomicsOnCpu::cpu = 0; AtomicsOnCpu::cpu < 4; ++AtomicsOnCpu::cpu)
    for (unsigned i = 0; i < kChunkSpans / 2 - 1; ++i) ASSERT_FALSE(arena.claim_whole(kSmall).empty());
  AtomicsOnCpu::cpu = 0;
  for (const auto& call : arena.pages.huge_advice()) EXPECT_FALSE(call.wanted);
}

// The system's collector of huge pages would fill again what went back in part.
TEST(Arena, HugePages_PartlyPurged_AreForbiddenThereOnly) {
  Native arena(with_huge_pages());
  const auto spans = fill_chunks(arena, 4);
  arena.put(kSmall, spans[2 * kChunkSpans + 3]);
  (void)arena->purge().trim(arena.now);
  ASSERT_EQ(arena.pages.huge_advice().size(), 1U);
  EXPECT_FALSE(arena.pages.huge_advice()[0].wanted);
  EXPECT_EQ(arena.pages.huge_advice()[0].address, arena->address(2 * kChunkSpans));
  EXPECT_EQ(arena.pages.huge_advice()[0].bytes, kChunk);
  arena.put(kSmall, spans[2 * kChunkSpans + 5]);
  (void)arena->purge().trim(arena.now);
  EXPECT_EQ(arena.pages.huge_advice().size(), 1U) << "once is enough";
  EXPECT_TRUE(arena.check());
}

// Small pages go back before a huge page is split, and whole huge pages before either, at one call each.
TEST(Arena, HugePages_WhollyFree_GoBackFirstAndWhole) {
  Native arena(with_huge_pages());
  const auto spans = fill_chunks(arena, 8);
  for (unsigned i = 0; i < kChunkSpans / 2; ++i) arena.put(kSmall, spans[i]);                // spans of small pages
  for (unsigned i = kChunkSpans; i < 3 * kChunkSpans / 2; ++i) arena.put(kSmall, spans[i]);  // half a huge page
  for (unsigned i = 3 * kChunkSpans; i < 6 * kChunkSpans; ++i) arena.put(kSmall, spans[i]);  // three whole ones
  EXPECT_TRUE(arena->purge().relieve(arena.now));
  ASSERT_FALSE(arena.pages.purges().empty());
  EXPECT_EQ(arena.pages.purges()[0].bytes, kChunk);
  EXPECT_EQ(arena.pages.huge_advice().size(), 0U) << "no huge page was split while whole ones were enough";
  EXPECT_LE(arena->budget().excess(), static_cast<std::int64_t>(kChunk));
  EXPECT_TRUE(arena.check());
}

// Only memory in huge pages may wait so that no huge page is split: free small pages beside live slots do not wait.
TEST(Arena, SmallPagesBesideLiveSlots_GoBackWhereNoHugePageIsSplit) {
  if (kSpanPages == 1) GTEST_SKIP() << "no page inside a span goes back";
  Native arena(with_huge_pages());
  const auto spans = fill_chunks(arena, 8);
  const auto put_all_but_the_first = [&](const std::vector<Taken>& words, std::size_t n) {
    for (std::size_t w = n; w < words.size(); ++w) arena.put(kSmall, words[w]);
  };
  for (unsigned i = 0; i < kChunkSpans; ++i) put_all_but_the_first(spans[i], spans[i].size() / 4);
  for (unsigned i = 2 * kChunkSpans; i < 4 * kChunkSpans; ++i) put_all_but_the_first(spans[i], spans[i].size() / 2);
  ASSERT_GT(arena->budget().excess(), 0);
  ASSERT_EQ(arena.pages.purges().size(), 0U) << "it is not worth a step";
  EXPECT_TRUE(arena->purge().relieve(arena.now));
  EXPECT_LE(arena->budget().excess(), 0);
  EXPECT_EQ(arena.pages.huge_advice().size(), 0U) << "no huge page was split";
  for (const auto& purge : arena.pages.purges()) EXPECT_LT(purge.address, arena->address(2 * kChunkSpans));
  EXPECT_TRUE(arena.check());
}

// A part of small pages that is free as a whole goes before one of which blocks are left, so that it can be huge again.
TEST(Arena, SmallPagesOfAPartThatIsWhollyFree_GoBackFirst) {
  Native arena(with_huge_pages());
  const auto spans = fill_chunks(arena, 8);
  arena.put(kSmall, spans[2 * kChunkSpans]);
  (void)arena->purge().trim(arena.now);  // splits the huge page of that chunk
  arena.pages.forget_log();
  for (unsigned i = 0; i < kChunkSpans / 2; ++i) arena.put(kSmall, spans[i]);  // spans of small pages, and in part
  for (unsigned i = 1; i < kChunkSpans; ++i) arena.put(kSmall, spans[2 * kChunkSpans + i]);
  (void)arena->purge().trim(arena.now);
  ASSERT_FALSE(arena.pages.purges().empty());
  EXPECT_EQ(arena.pages.purges()[0].address, arena->address(2 * kChunkSpans + 1)) << "the first span is clean";
  EXPECT_EQ(arena.pages.purges()[0].bytes, kChunk - kSpan);
  EXPECT_TRUE(arena.check());
}

// A huge page that was split and then went back as a whole is as good as new.
TEST(Arena, HugePages_PartThatIsWhollyClean_GetsThemAgain) {
  Native arena(with_huge_pages());
  const auto spans = fill_chunks(arena, 2);
  arena.put(kSmall, spans[kChunkSpans]);
  (void)arena->purge().trim(arena.now);
  for (unsigned i = kChunkSpans + 1; i < 2 * kChunkSpans; ++i) arena.put(kSmall, spans[i]);
  (void)arena->purge().trim(arena.now);
  ASSERT_EQ(arena->free_dirty_bytes(), 0U);
  arena.pages.forget_log();
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  ASSERT_EQ(arena.pages.huge_advice().size(), 1U);
  EXPECT_TRUE(arena.pages.huge_advice()[0].wanted);
  ASSERT_NE(arena.claim_span(kSmall), kNoSpan);
  EXPECT_EQ(arena.pages.huge_advice().size(), 1U) << "at its first span only";
  EXPECT_TRUE(arena.check());
}

// ---- another thread at any moment -------------------------------------------------------------------------------------

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
      arena->slots().note_taken(pool::span_of(word));
      arena.report(kSmall, theirs.bits, 1);
    });
    (void)arena->purge().trim(arena.now);
    test::HookedAtomics::hook = nullptr;
    if (changes < moment) return;
    if (theirs.bits != 0) {
      const auto place = static_cast<std::size_t>(arena.slot(kSmall, theirs.word, base::lowest_bit(theirs.bits)) -
                                                  arena.memory(pool::span_of(theirs.word)));
      EXPECT_EQ(arena->slots().span(pool::span_of(theirs.word)).page_hints.load() >> (place / SmallConfig::page_bytes()) & 1,
                0U)
          << "in use, and counted as given back, at moment " << moment;
      EXPECT_TRUE(arena.check()) << moment;
      arena.put(kSmall, theirs);
    }
    arena.put(kSmall, one);
    EXPECT_TRUE(arena.check()) << moment;
  });
  EXPECT_GT(moments, 1U);
}

// One of two threads that free one run at the same time learns so.
TEST(Arena, FreeRun_ByTwoAtTheSameTime_OneOfThemDoes) {
  const unsigned moments = test::at_every_moment([](unsigned moment, unsigned& changes) {
    Hooked arena;
    const RunPlace run = arena.run(3);
    bool theirs = false;
    test::HookedAtomics::interrupt_at(moment, changes, [&] { theirs = arena->runs().free_run(run.first, arena.now); });
    const bool mine = arena->runs().free_run(run.first, arena.now);
    test::HookedAtomics::hook = nullptr;
    if (changes >= moment) {
      EXPECT_NE(mine, theirs) << moment;
      EXPECT_EQ(arena->free_dirty_bytes(), 3 * kSpan) << moment;
      EXPECT_TRUE(arena.check()) << moment;
    }
  });
  EXPECT_GT(moments, 1U);
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
              const SpanIndex last = first + arena->runs().run_pages(first) / kSpanPages - 1;
              std::memset(arena.memory(last) + 100, 3, 64);
            }
          }
          break;
        case 8:  // a thread finds slots of spans in use
          if (!spans.empty()) {
            const SizeClass c = spans[random() % spans.size()].first;
            pool::Cursor cursor;
            const Taken t = arena->slots().take_slots(c, cursor, 64, 1, 0);
            if (t.bits == 0) break;
            arena.report(c, t.bits, 1);
            spans.emplace_back(c, std::vector<Taken>{t});
          }
          break;
        default:
          if (random() % 8 == 0)
            (void)arena->purge().trim(arena.now);
          else
            arena->purge().tick(arena.now);
      }
      ASSERT_TRUE(arena->check_invariants()) << step;
      ASSERT_TRUE(arena->check_accounts({})) << step;
    }
    arena.pages.heal();
    for (auto& [c, all] : spans) arena.put(c, all);
    for (const RunPlace& place : runs) arena.free_run(place.first);
    (void)arena->purge().trim(arena.now);
    ASSERT_TRUE(arena.check());
    EXPECT_EQ(arena->free_dirty_bytes(), 0U);
    arena->for_each_span([&](SpanIndex i, SizeClass c) { EXPECT_FALSE(c.is_slot()) << i; });
    arena->purge().set_limit(0);
    std::size_t spans_left = 0;
    for (RunPlace place = arena.run(1); place.first != kNoSpan; place = arena.run(1), ++spans_left)
      EXPECT_TRUE(place.zero && arena.zero(place.first, 1)) << place.first;
    EXPECT_EQ(spans_left, 8 * kMiB / kSpan) << "nothing is lost";
    EXPECT_TRUE(arena.check());
  }
}

}  // namespace
}  // namespace freehold::alloc
