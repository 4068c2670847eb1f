// SPDX-License-Identifier: MIT
#include "freehold/alloc/spans/chunk_pool.hpp"
#include "freehold/sync/atomics.hpp"
#include "tests/support/test.hpp"

namespace freehold::alloc {
namespace {

constexpr unsigned kSpans = 16;  // spans of a chunk

class Small {
 public:
  using Type = ChunkPool<sync::NativeAtomics, kSpans>;

  explicit Small(std::size_t count, unsigned stripes = 1)
      : chunks_(std::make_unique<Chunk<sync::NativeAtomics>[]>(count)),
        words_(std::make_unique<Type::Word[]>(Type::Tree::words_for(count) * Type::kTrees * stripes)) {
    pool_.attach(chunks_.get(), words_.get(), count, stripes);
    for (auto& cursor : cursors_) cursor.store(Type::kNoChunk);
    count_ = static_cast<std::uint32_t>(count);
  }
  Type* operator->() { return &pool_; }
  void add(std::uint32_t c, ChunkKind kind) {  // in which no CPU works
    pool_.add(c, kind, {});
    pool_.chunk(c).user.store(0);
  }
  std::uint32_t now = 0;  // milliseconds
  [[nodiscard]] bool check() const { return pool_.check_invariants(count_); }
  [[nodiscard]] TakenSpans take(ChunkKind kind, unsigned n, unsigned alignment = 1, bool anywhere = false,
                                Searcher by = {}) {
    return pool_.take(kind, n, alignment, by, cursors_[by.cpu], anywhere, now);
  }
  [[nodiscard]] TakenSpans run(unsigned n, unsigned alignment = 1) { return take(ChunkKind::kRuns, n, alignment, true); }
  [[nodiscard]] TakenSpans dirty_run(unsigned n) { return pool_.take_dirty_run(n, 1, {}, cursors_[0], true, now); }

 private:
  std::unique_ptr<Chunk<sync::NativeAtomics>[]> chunks_;
  std::unique_ptr<Type::Word[]> words_;
  Type pool_;
  Type::Cursor cursors_[8];
  std::uint32_t count_ = 0;
};

// ---- which one --------------------------------------------------------------------------------------------------------

TEST(ChunkPool, Cpus_WorkApartUntilMemoryIsShort) {
  Small pool(3);
  pool.add(0, ChunkKind::kSlots);
  pool.add(1, ChunkKind::kSlots);
  const auto take = [&](unsigned cpu, bool anywhere) { return pool.take(ChunkKind::kSlots, 1, 1, anywhere, {cpu}).first; };
  EXPECT_EQ(take(0, false), 0U);
  EXPECT_EQ(take(1, false), kSpans);
  EXPECT_EQ(take(2, false), kNoSpan) << "each chunk has its user";
  EXPECT_EQ(take(2, true), 1U);
  EXPECT_EQ(take(0, false), 2U) << "a hint only: the former user stays";
  for (unsigned i = 3; i < kSpans; ++i) EXPECT_EQ(take(0, false), i);
  EXPECT_EQ(take(0, false), kNoSpan);
  EXPECT_EQ(take(0, true), kSpans + 1);
  EXPECT_TRUE(pool.check());
}

// A chunk whose free spans have pages, in which no CPU works now. A CPU that has worked there would find it again: each take
// is by another one.
class LeftChunk {
 public:
  explicit LeftChunk(Searcher by, unsigned stripes = 1) : pool_(1, stripes) {
    pool_->add(0, ChunkKind::kRuns, by);
    EXPECT_TRUE(take_and_free(by));
  }
  bool take_and_free(Searcher by, bool anywhere = false) {
    const SpanIndex first = pool_.take(ChunkKind::kRuns, kSpans, 1, anywhere, by).first;
    if (first == kNoSpan) return false;
    pool_->give(first, kSpans, true, pool_.now);
    pool_->chunk(0).user.store(pool_->chunk(0).user.load() & ~Searcher::kWorks);
    return true;
  }
  void pass(std::uint32_t ms) { pool_.now += ms; }
  Small& pool() { return pool_; }

 private:
  Small pool_;
};

TEST(ChunkPool, GroupOfCpus_KeepsItsPagesUntilTheyAreIdleOrMemoryIsShort) {
  for (const unsigned stripes : {1U, 4U}) {
    LeftChunk chunk({0}, stripes);
    EXPECT_FALSE(chunk.take_and_free({2})) << "pages of another group";
    EXPECT_TRUE(chunk.take_and_free({1}));
    EXPECT_TRUE(chunk.take_and_free({2}, true)) << "memory is short";
    EXPECT_FALSE(chunk.take_and_free({4})) << "the other group worked there last";
    chunk.pass(10);
    EXPECT_TRUE(chunk.take_and_free({4})) << "free for 10 ms";
  }
}

// Times have 32 bits, and half of them may not lie in the future: a machine runs that long.
TEST(ChunkPool, FreedFiftyDaysAgoOrLess_IsIdle) {
  for (const std::uint32_t days : {1U, 24U, 25U, 49U}) {
    LeftChunk chunk({0});
    chunk.pass(days * 86'400'000);
    EXPECT_TRUE(chunk.take_and_free({4})) << days << " days";
    chunk.pass(~std::uint32_t{0});
    EXPECT_FALSE(chunk.take_and_free({6})) << days << " days: freed after the searcher read the clock";
  }
}

TEST(ChunkPool, Node_KeepsItsPagesLonger) {
  LeftChunk chunk({0, 1});
  EXPECT_FALSE(chunk.take_and_free({1, 2}));
  chunk.pass(10);
  EXPECT_FALSE(chunk.take_and_free({3, 2}));
  EXPECT_TRUE(chunk.take_and_free({5, 0})) << "a thread of no known node";
  chunk.pass(100);
  EXPECT_TRUE(chunk.take_and_free({3, 2})) << "free for 100 ms";
}

TEST(ChunkPool, ChunkWithoutPages_IsAnybodys) {
  LeftChunk chunk({0, 1});
  Small& pool = chunk.pool();
  unsigned n = 0;
  const SpanIndex first = pool->take_dirty(0, kSpans, n);
  EXPECT_FALSE(chunk.take_and_free({2, 2})) << "all of its spans are being purged";
  pool->give_clean(first, n, 0);
  EXPECT_TRUE(chunk.take_and_free({2, 2}));
  EXPECT_FALSE(chunk.take_and_free({3, 1})) << "it has moved to the other node";
}

// ---- fragmentation ----------------------------------------------------------------------------------------------------

// The greatest power of two below the length says "perhaps" of all these chunks; the next one says nothing of the last.
TEST(ChunkPool, Run_BetweenTwoPowersBehindManyThatMislead_IsFoundWhenMemoryIsShort) {
  constexpr std::uint32_t kChunks = 100;
  for (const unsigned alignment : {1U, 2U}) {
    Small pool(kChunks);
    for (std::uint32_t c = 0; c < kChunks; ++c) {
      pool.add(c, ChunkKind::kRuns);
      const bool last = c + 1 == kChunks;
      (void)pool->take_exactly(c * kSpans + (last ? 6 : 4), 1);  // runs of 4, or 6
      (void)pool->take_exactly(c * kSpans + (last ? 7 : 9), 1);
      (void)pool->take_exactly(c * kSpans + 13, 3);
    }
    EXPECT_EQ(pool.run(8).first, kNoSpan);
    const TakenSpans t = pool.run(6, alignment);
    EXPECT_EQ(t.first, (kChunks - 1) * kSpans) << "memory is short, and there is a run: it may not be overlooked";
    EXPECT_TRUE(pool.check());
  }
}

TEST(ChunkPool, DirtyRun_BehindManyChunksWithShorterOnes_IsFound) {
  constexpr std::uint32_t kChunks = 50;
  Small pool(kChunks);
  for (std::uint32_t c = 0; c < kChunks; ++c) {
    pool.add(c, ChunkKind::kRuns);
    const unsigned n = c + 1 == kChunks ? 4 : 2;
    (void)pool->take_exactly(c * kSpans, n);
    pool->give(c * kSpans, n, true, 1);
  }
  const TakenSpans t = pool.dirty_run(4);
  EXPECT_EQ(t.first, (kChunks - 1) * kSpans);
  EXPECT_EQ(t.dirty, 4U);
  EXPECT_EQ(pool.dirty_run(4).first, kNoSpan) << "all others are shorter, or clean";
  EXPECT_TRUE(pool.check());
}

// ---- everything at random, against a plain table ----------------------------------------------------------------------

// The state of each span, kept without any cleverness.
struct Model {
  enum State : unsigned char { kNone, kClean, kDirty, kUsed };
  std::vector<State> spans;
  std::vector<ChunkKind> kinds;

  [[nodiscard]] bool is_free(std::size_t i) const { return spans[i] == kClean || spans[i] == kDirty; }
  [[nodiscard]] bool fits(std::size_t first, unsigned n) const {
    if (first % kSpans + n > kSpans) return false;
    for (unsigned i = 0; i < n; ++i)
      if (!is_free(first + i)) return false;
    return true;
  }
  [[nodiscard]] bool exists(ChunkKind kind, unsigned n, unsigned alignment) const {
    for (std::size_t i = 0; i < spans.size(); i += alignment)
      if (kinds[i / kSpans] == kind && fits(i, n)) return true;
    return false;
  }
  // Checks that a take of n spans may answer `t`; marks them used.
  void take(const TakenSpans& t, unsigned n) {
    ASSERT_TRUE(fits(t.first, n));
    unsigned dirty = 0;
    for (unsigned i = 0; i < n; ++i) dirty += spans[t.first + i] == kDirty ? 1 : 0;
    ASSERT_EQ(t.dirty, dirty) << "a wrong claim about zero pages";
    std::fill_n(spans.begin() + t.first, n, kUsed);
  }
  void give(SpanIndex first, unsigned n, State state) { std::fill_n(spans.begin() + first, n, state); }
};

class RandomLife {
 public:
  static constexpr std::uint32_t kChunks = 40;

  explicit RandomLife(unsigned seed) : random_(seed), pool_(kChunks, seed % 2 == 0 ? 1 : 4) {
    model_.spans.assign(std::size_t{kChunks} * kSpans, Model::kNone);
    model_.kinds.assign(kChunks, ChunkKind::kNone);
  }
  void step() {
    switch (random_() % 8) {
      case 0: return add();
      case 1:
      case 2:
      case 3: return take();
      case 4: return purge();
      case 5: return extend();
      default: return give();
    }
  }
  void check() {
    ASSERT_TRUE(pool_.check());
    for (SpanIndex i = 0; i < model_.spans.size(); ++i) ASSERT_EQ(pool_->is_free(i), model_.is_free(i)) << i;
  }

 private:
  struct Held {
    SpanIndex first;
    unsigned n;
  };
  void add() {
    const std::uint32_t c = random_() % kChunks;
    if (model_.kinds[c] != ChunkKind::kNone || random_() % 4 != 0) return;
    model_.kinds[c] = random_() % 3 == 0 ? ChunkKind::kSlots : ChunkKind::kRuns;
    pool_->add(c, model_.kinds[c], {static_cast<unsigned>(random_() % 8)});
    model_.give(c * kSpans, kSpans, Model::kClean);
  }
  void take() {
    const ChunkKind kind = random_() % 3 == 0 ? ChunkKind::kSlots : ChunkKind::kRuns;
    const unsigned n = 1 + random_() % (random_() % 4 == 0 ? kSpans : 4), alignment = 1U << random_() % 5;
    const bool anywhere = random_() % 2 == 0;
    const Searcher by{static_cast<unsigned>(random_() % 8), static_cast<std::uint8_t>(random_() % 3)};
    const TakenSpans t = pool_.take(kind, n, alignment, anywhere, by);
    if (t.first == kNoSpan) {
      ASSERT_FALSE(anywhere && model_.exists(kind, n, alignment)) << n << " spans at " << alignment << " are overlooked";
      return;
    }
    EXPECT_EQ(t.first % alignment, 0U);
    EXPECT_EQ(model_.kinds[t.first / kSpans], kind);
    model_.take(t, n);
    held_.push_back({t.first, n});
  }
  void give() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    Held& held = held_.back();
    const unsigned n = 1 + random_() % held.n;  // the tail of it, or all
    const SpanIndex first = held.first + held.n - n;
    // Untouched spans may be given back as they were.
    const auto marks = static_cast<std::uint32_t>(pool_->chunk(first / kSpans).dirty.load() >> first % kSpans);
    const bool dirty = (marks & base::low_bits(n)) != 0 || random_() % 4 != 0;
    model_.give(first, n, dirty ? Model::kDirty : Model::kClean);
    pool_->give(first, n, dirty, ++now_);
    if ((held.n -= n) == 0) held_.pop_back();
  }
  void extend() {
    if (held_.empty()) return;
    Held& held = held_[random_() % held_.size()];
    const unsigned n = 1 + random_() % 4;
    const SpanIndex first = held.first + held.n;
    if (first % kSpans == 0 || first % kSpans + n > kSpans) return;
    const bool fits = model_.fits(first, n);
    const TakenSpans t = pool_->take_exactly(first, n);
    ASSERT_EQ(t.first != kNoSpan, fits);
    if (!fits) return;
    model_.take(t, n);
    held.n += n;
  }
  void purge() {
    const std::uint32_t c = pool_->find_dirty(random_() % kChunks);
    if (c == Small::Type::kNoChunk) return;
    unsigned n = 0;
    const SpanIndex first = pool_->take_dirty(c, 1 + random_() % kSpans, n);
    if (first == kNoSpan) return;
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(model_.spans[first + i], Model::kDirty);
    const bool refused = random_() % 4 == 0;
    if (refused)
      pool_->give(first, n, true, ++now_);
    else
      pool_->give_clean(first, n, ++now_);
    model_.give(first, n, refused ? Model::kDirty : Model::kClean);
  }

  std::mt19937 random_;
  Small pool_;
  Model model_;
  std::vector<Held> held_;
  std::uint32_t now_ = 0;
};

TEST(ChunkPool, RandomLife_AgreesWithAPlainTableAfterEveryStep) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    RandomLife life(seed);
    for (int step = 0; step < 3000; ++step) {
      life.step();
      life.check();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace freehold::alloc
