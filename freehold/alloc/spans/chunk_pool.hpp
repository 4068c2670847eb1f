// SPDX-License-Identifier: MIT
// Free spans as one bit each: the page level of the engine. take() finds neighbouring free spans, give() frees them, and the
// purger takes those that still hold pages.
//
// The arena is cut into chunks of 64 spans (4 MiB). A chunk has one word of free bits and one of dirty bits, so a run of up
// to 64 spans is allocated by one compare-exchange and freed by one fetch_or. Neighbouring free runs merge by themselves,
// since they are neighbouring bits. A chunk serves one kind of span: kSlots (spans of classes up to 2 KiB, packed, under
// huge pages) or kRuns (blocks above 32 KiB, and spans of larger classes). Summary trees over the chunks say which may hold
// a free run of 2^k spans, and which hold free spans that may still have pages. A CPU works in a private chunk while it can
// (`user`), so that CPUs share neither a word nor memory, and in chunks where CPUs of its memory node worked last; the hint
// costs nothing when it is wrong.
//
//   Invariants: bit s of `free` set  <=>  span s of the chunk is free. At rest, a free run of 2^k spans has its chunk in
//               trees k and below, and a span that is free and dirty has its chunk in the dirty tree.
//               `dirty` is meaningful for free spans only; a span is marked dirty before it is published as free.
//
// No lock, any thread. Linearisation: take at the compare-exchange, give at the fetch_or.
// Cost: take and give one atomic each on the chunk's line, and a few loads of tree words that seldom change.
// Source: LLFree (Wrenger et al., USENIX ATC 2023) keeps page frames so; the summary protocol is word_pool.hpp's.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/spans/span.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

enum class ChunkKind : std::uint8_t { kNone, kSlots, kRuns };
[[nodiscard]] constexpr ChunkKind other_kind(ChunkKind kind) noexcept {
  return kind == ChunkKind::kSlots ? ChunkKind::kRuns : ChunkKind::kSlots;
}

struct ChunkPoolOrders {
  // acquire: pairs with kGive; the span's former user, or the purger, is done with it.
  static constexpr auto kTake = std::memory_order_acquire;
  // seq_cst: release for the pages' contents, and ordered against the loads of the trees that follow (store buffering with
  // the searcher, which clears a tree's bit and then reads the free word again).
  static constexpr auto kGive = std::memory_order_seq_cst;
  static constexpr auto kReread = std::memory_order_seq_cst;
};

template <sync::Atomics A>
struct alignas(base::kCacheLine) Chunk {
  typename A::template atomic<std::uint64_t> free{0};
  typename A::template atomic<std::uint64_t> dirty{0};
  typename A::template atomic<std::uint32_t> freed_at{0};  // milliseconds, when a span became free last
  typename A::template atomic<std::uint32_t> purged_at{
      0};                                              // milliseconds, when pages of free spans went back last; 0: never
  typename A::template atomic<std::uint32_t> user{0};  // who works here, as Searcher::as_user() has it: a hint
  typename A::template atomic<ChunkKind> kind{ChunkKind::kNone};
  typename A::template atomic<bool> has_records{false};  // spans of it had a size class since their records were purged
  typename A::template atomic<std::uint8_t> huge{0};     // one bit for each part that huge pages are asked for under
  typename A::template atomic<std::uint8_t> stripe{0};   // stripe of the trees, where it stays
  std::uint32_t unmapped{0};  // not 0: its memory is not there, nor is a span free (arena_growth.hpp)
};
static_assert(sizeof(Chunk<sync::NativeAtomics>) == base::kCacheLine);

// Says who looks for spans: a CPU, as far as CPUs work apart, and its memory node, from 1 on; 0: only one is known. A chunk
// keeps who worked there last. Neighbouring CPUs of one node are one group: they share what they have freed.
struct Searcher {
  unsigned cpu = 0;
  std::uint8_t node = 0;

  static constexpr unsigned kGroupCpus = 2;
  static constexpr std::uint32_t kNodeShift = 24, kWorks = 1U << 23, kCpuMask = kWorks - 1;
  [[nodiscard]] constexpr std::uint32_t as_user() const noexcept {
    return std::uint32_t{node} << kNodeShift | kWorks | ((cpu + 1) & kCpuMask);
  }
  // The CPU of `user` is this one, and still works there; or another one does.
  [[nodiscard]] constexpr bool works_as(std::uint32_t user) const noexcept {
    return (user & kWorks) != 0 && ((user ^ as_user()) & kCpuMask) == 0;
  }
  [[nodiscard]] constexpr bool is_apart_from(std::uint32_t user) const noexcept {
    return (user & kWorks) != 0 && ((user ^ as_user()) & kCpuMask) != 0;
  }
  [[nodiscard]] constexpr bool is_of_another_group(std::uint32_t user) const noexcept {
    const std::uint32_t theirs = user & kCpuMask;
    return (theirs != 0 && (theirs - 1) / kGroupCpus != cpu / kGroupCpus) || is_of_another_node(user);
  }
  [[nodiscard]] constexpr bool is_of_another_node(std::uint32_t user) const noexcept {
    const std::uint32_t theirs = user >> kNodeShift;
    return theirs != node && theirs != 0 && node != 0;
  }
};

// Spans that were taken.
struct TakenSpans {
  SpanIndex first = kNoSpan;
  unsigned dirty = 0;           // how many may still hold pages; 0: all read as zero
  std::uint32_t purged_at = 0;  // the chunk's, if some do not
};

template <sync::Atomics A, unsigned kChunkSpans, class Orders = ChunkPoolOrders>
class ChunkPool {
 public:
  using ChunkType = Chunk<A>;
  using Tree = pool::SummaryTree<A>;
  using Word = typename Tree::Word;
  using Cursor = typename A::template atomic<std::uint32_t>;  // where a CPU works: a chunk, or kNoChunk
  static constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};
  static constexpr std::uint64_t kAll = base::low_bits(kChunkSpans);
  static constexpr unsigned kOrders = std::bit_width(kChunkSpans);  // runs of 1, 2, 4 … kChunkSpans spans
  // One line for the trees that every free looks at.
  static constexpr unsigned kTrees = 16;
  static_assert(std::has_single_bit(kChunkSpans) && kChunkSpans <= 64 && kOrders + 3 <= kTrees);

  constexpr ChunkPool() noexcept = default;

  // Bits of the spans [first, first + n) in their chunk's words. Pre: 1 <= n <= kChunkSpans.
  [[nodiscard]] static constexpr std::uint64_t mask_of(SpanIndex first, unsigned n) noexcept {
    return (~std::uint64_t{0} >> (64 - n)) << (first % kChunkSpans);
  }

  // Not thread-safe. `chunks`: zeroed, `count` of them; `tree_words`: zeroed, Tree::words_for(count) * kTrees * stripes.
  // `stripes`: a power of two, at most 256.
  void attach(ChunkType* chunks, Word* tree_words, std::size_t count, unsigned stripes = 1) noexcept {
    chunks_ = chunks;
    stripes_ = stripes;
    for (unsigned t = 0; t < kTrees; ++t) trees_[t].attach(tree_words + t, std::size_t{kTrees} * stripes, count, kTrees);
  }

  [[nodiscard]] bool is_one_group() const noexcept { return stripes_ == 1; }

  // A new chunk whose first `spans` are free and clean, for a CPU to work in. The others may be given later. The caller
  // serialises.
  void add(std::uint32_t chunk, ChunkKind kind, Searcher by, unsigned spans = kChunkSpans) noexcept {
    chunks_[chunk].user.store(by.as_user(), std::memory_order_relaxed);  // relaxed: a hint
    chunks_[chunk].kind.store(kind, std::memory_order_relaxed);          // relaxed, both: published by the give
    if (stripes_ != 1)
      chunks_[chunk].stripe.store(static_cast<std::uint8_t>(stripe_of_group(by)), std::memory_order_relaxed);
    publish(chunk, kind, base::low_bits(spans));
  }

  // Takes `n` neighbouring spans, 1 <= n <= kChunkSpans, whose first is a multiple of `alignment` (a power of two, at most
  // kChunkSpans): dirty ones where `cursor` stands, else dirty ones, else where `cursor` stands, else any; unless
  // `anywhere`, of chunks that no other CPU works in, and of other groups only what is idle at `now` (milliseconds) or has
  // no pages. first == kNoSpan: no such spans under these terms.
  [[nodiscard]] TakenSpans take(ChunkKind kind, unsigned n, unsigned alignment, Searcher by, Cursor& cursor, bool anywhere,
                                std::uint32_t now) noexcept {
    const Search search{kind, n, alignment, by, anywhere, now};
    std::uint32_t here = cursor.load(std::memory_order_relaxed);  // relaxed: a hint, the chunk's word decides
    if (here != kNoChunk && is_elsewhere(here, by)) here = kNoChunk;
    if (here != kNoChunk)
      if (const TakenSpans t = take_in(here, search, true); t.first != kNoSpan) return t;
    const std::uint32_t from = here == kNoChunk ? 0 : here;
    TakenSpans found = in_stripes(search, [&](unsigned stripe) { return take_dirty_in(stripe, search, from, kLooks); });
    if (found.first == kNoSpan && here != kNoChunk) found = take_in(here, search, false);
    if (found.first == kNoSpan) found = in_stripes(search, [&](unsigned stripe) { return take_in_stripe(stripe, search); });
    if (found.first != kNoSpan) move_to(found.first / kChunkSpans, by, cursor);
    return found;
  }

  // The same for runs, of spans that may all hold pages, in the caller's stripe: a long search. The CPU stays where it
  // works.
  [[nodiscard]] TakenSpans take_dirty_run(unsigned n, unsigned alignment, Searcher by, const Cursor& cursor, bool anywhere,
                                          std::uint32_t now) noexcept {
    if (trees_[kDirtyTree].looks_empty(stripe_of_group(by))) return {};
    const std::uint32_t here = cursor.load(std::memory_order_relaxed);  // relaxed: a hint
    const Search search{ChunkKind::kRuns, n, alignment, by, anywhere, now};
    return take_dirty_in(stripe_of_group(by), search, here == kNoChunk ? 0 : here, kDirtyLooks);
  }

  // Takes exactly the spans [first, first + n) of one chunk, all or nothing.
  [[nodiscard]] TakenSpans take_exactly(SpanIndex first, unsigned n) noexcept {
    ChunkType& chunk = chunks_[first / kChunkSpans];
    const std::uint64_t mask = mask_of(first, n);
    std::uint64_t seen = chunk.free.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    while ((seen & mask) == mask)
      if (chunk.free.compare_exchange_weak(seen, seen & ~mask, Orders::kTake, std::memory_order_relaxed))
        return taken(chunk, first, mask);
    return {};
  }

  // --- for threads that keep free spans of a chunk for themselves, as bits of a word -------------------------------------

  // All free spans of the chunk. Acquire: as in take().
  [[nodiscard]] std::uint64_t reserve(std::uint32_t c) noexcept {
    ChunkType& chunk = chunks_[c];
    // relaxed: a glance, so that a chunk with nothing to give costs no exchange.
    return chunk.free.load(std::memory_order_relaxed) == 0 ? 0 : chunk.free.exchange(0, Orders::kTake);
  }
  // Tells which spans that the caller holds may have pages. Relaxed: the taking exchange made the marks visible.
  [[nodiscard]] std::uint64_t dirty_among(std::uint32_t c, std::uint64_t bits) const noexcept {
    return chunks_[c].dirty.load(std::memory_order_relaxed) & bits;
  }
  // Gives `free` back, of which `dirty` may hold pages. Returns the spans among them that were free already: a thread freed
  // them twice.
  [[nodiscard]] std::uint64_t unreserve(std::uint32_t c, std::uint64_t free, std::uint64_t dirty,
                                        std::uint32_t now) noexcept {
    ChunkType& chunk = chunks_[c];
    if (free == 0) return 0;
    // relaxed, both: published by the give below.
    if (dirty != 0) chunk.freed_at.store(now, std::memory_order_relaxed);
    if ((chunk.dirty.load(std::memory_order_relaxed) & dirty) != dirty)
      chunk.dirty.fetch_or(dirty, std::memory_order_relaxed);
    const std::uint64_t before = chunk.free.fetch_or(free, Orders::kGive);
    const unsigned stripe = stripe_of(c);
    for (unsigned k = 0; k < kOrders && has_run(before | free, 1U << k); ++k) trees_[kRunTrees + k].set(c, stripe);
    if (dirty != 0) trees_[kDirtyTree].set(c, stripe);
    return before & free;
  }
  // The bit of the first of `n` neighbouring spans among `bits`, at a multiple of `alignment`; kNoPlace: there are none.
  static constexpr unsigned kNoPlace = ~0U;
  [[nodiscard]] static unsigned find_run(std::uint64_t bits, unsigned n, unsigned alignment) noexcept {
    const std::uint64_t fit = starts(bits, n) & multiples_of(alignment);
    return fit == 0 ? kNoPlace : base::lowest_bit(fit);
  }

  // Gives spans of one chunk back. `dirty`: they may hold pages. `just_now`: they were in use until now, not idle.
  void give(SpanIndex first, unsigned n, bool dirty, std::uint32_t now, bool just_now = true) noexcept {
    const std::uint32_t c = first / kChunkSpans;
    ChunkType& chunk = chunks_[c];
    const std::uint64_t mask = mask_of(first, n);
    if (dirty) {
      // relaxed: published by the give below, and ours alone while we hold the spans.
      if ((chunk.dirty.load(std::memory_order_relaxed) & mask) != mask)
        chunk.dirty.fetch_or(mask, std::memory_order_relaxed);
      if (just_now) chunk.freed_at.store(now, std::memory_order_relaxed);
    }
    const ChunkKind kind = chunk.kind.load(std::memory_order_relaxed);
    publish(c, kind, mask);
    if (dirty) trees_[kDirtyTree].set(c, stripe_of(c));
  }

  // Gives the `n` spans of a take back, whose pages were not touched.
  void give_untouched(const TakenSpans& t, unsigned n) noexcept {
    give(t.first, n, false, 0);
    const std::uint32_t c = t.first / kChunkSpans;
    if (t.dirty != 0) trees_[kDirtyTree].set(c, stripe_of(c));  // their marks still stand
  }

  // --- for the purger ------------------------------------------------------------------------------------------------

  // True if `at` was `age` milliseconds before `now`, or longer. Another thread may have written it after `now` was read: a
  // quarter of an hour is future, and the rest of 49 days is past.
  [[nodiscard]] static constexpr bool is_past(std::uint32_t at, std::uint32_t now, std::uint32_t age) noexcept {
    constexpr std::uint32_t kFutureMs = 1U << 20;
    return now - at + kFutureMs >= age + kFutureMs;
  }
  // Chunks that may hold free spans with pages, stripe by stripe: the first one, or the first from chunk `from` on; and the
  // next one. kNoChunk: no such chunk.
  [[nodiscard]] std::uint32_t find_dirty(std::uint32_t from = 0) noexcept {
    return find_dirty_in(from == 0 ? 0 : stripe_of(from), from);
  }
  [[nodiscard]] std::uint32_t next_dirty(std::uint32_t c) noexcept { return find_dirty_in(stripe_of(c), c + 1); }
  // Bits of the spans of the chunk that are free and dirty; 0: none is, and the chunk leaves the dirty tree until something
  // is freed there. Relaxed: a glance.
  [[nodiscard]] std::uint64_t free_and_dirty(std::uint32_t c) noexcept {
    ChunkType& chunk = chunks_[c];
    const std::uint64_t bits = chunk.free.load(std::memory_order_relaxed) & chunk.dirty.load(std::memory_order_relaxed);
    if (bits == 0) trees_[kDirtyTree].retire(c, [&] { return has_dirty(chunk); }, stripe_of(c));
    return bits;
  }
  // Takes up to `most` neighbouring spans of the chunk that are free, dirty and in `among`; `n` says how many. kNoSpan:
  // none; the chunk leaves the dirty tree if it has none at all.
  [[nodiscard]] SpanIndex take_dirty(std::uint32_t c, unsigned most, unsigned& n, std::uint64_t among = kAll) noexcept {
    ChunkType& chunk = chunks_[c];
    std::uint64_t seen = chunk.free.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t bits = seen & among & chunk.dirty.load(std::memory_order_relaxed);  // relaxed: a glance
      if (bits == 0) {
        (void)free_and_dirty(c);
        return kNoSpan;
      }
      const unsigned low = base::lowest_bit(bits);
      n = std::min(most, static_cast<unsigned>(std::countr_one(bits >> low)));
      const std::uint64_t mask = base::low_bits(n) << low;
      if (chunk.free.compare_exchange_weak(seen, seen & ~mask, Orders::kTake, std::memory_order_relaxed))
        return c * kChunkSpans + low;
    }
  }
  // Gives spans back whose pages went back to the system.
  void give_clean(SpanIndex first, unsigned n, std::uint32_t now) noexcept {
    ChunkType& chunk = chunks_[first / kChunkSpans];
    // relaxed: the spans are ours, the give below publishes.
    chunk.dirty.fetch_and(~mask_of(first, n), std::memory_order_relaxed);
    chunk.purged_at.store(now | 1, std::memory_order_relaxed);  // never 0
    give(first, n, false, now);
  }

  [[nodiscard]] ChunkType& chunk(std::uint32_t c) noexcept { return chunks_[c]; }
  [[nodiscard]] const ChunkType& chunk(std::uint32_t c) const noexcept { return chunks_[c]; }
  [[nodiscard]] bool is_free(SpanIndex i) const noexcept {
    return (chunks_[i / kChunkSpans].free.load(std::memory_order_relaxed) & mask_of(i, 1)) != 0;
  }

  // The invariants above for the chunks below `count`; call at rest.
  [[nodiscard]] bool check_invariants(std::uint32_t count) const noexcept {
    for (std::uint32_t c = 0; c < count; ++c) {
      const ChunkType& chunk = chunks_[c];
      const ChunkKind kind = chunk.kind.load(std::memory_order_relaxed);
      const std::uint64_t free = chunk.free.load(std::memory_order_relaxed);
      if ((free & ~kAll) != 0 || (kind == ChunkKind::kNone && free != 0)) return false;
      for (unsigned k = 0; kind == ChunkKind::kRuns && k < kOrders; ++k)
        if (has_run(free, 1U << k) && !trees_[kRunTrees + k].check_path(c, stripe_of(c))) return false;
      if (kind == ChunkKind::kSlots && free != 0 && !trees_[kSlotTree].check_path(c, stripe_of(c))) return false;
      if (has_dirty(chunk) && !trees_[kDirtyTree].check_path(c, stripe_of(c))) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned kSlotTree = 0, kRunTrees = 1, kDirtyTree = kRunTrees + kOrders;
  // Chunks that may be too fragmented which a search looks at, unless memory is short (`anywhere`).
  static constexpr unsigned kLooks = 8;
  // The same for take_dirty_run(): a clean span costs 16 page faults.
  static constexpr unsigned kDirtyLooks = 64;
  // After which free memory is no longer its group's, or its node's, alone: what a program can touch in that time is what
  // groups may hold beside each other.
  static constexpr std::uint32_t kGroupIdleMs = 10, kNodeIdleMs = 100;

  struct Search {
    ChunkKind kind;
    unsigned n, alignment;
    Searcher by;
    bool anywhere;  // also in chunks where other CPUs work, or of other groups
    std::uint32_t now;
  };

  // Bit s: the spans s … s + n - 1 are all among `bits`.
  [[nodiscard]] static constexpr std::uint64_t starts(std::uint64_t bits, unsigned n) noexcept {
    unsigned have = 1;
    for (; 2 * have <= n; have *= 2) bits &= bits >> have;
    return bits & (bits >> (n - have));
  }
  [[nodiscard]] static constexpr bool has_run(std::uint64_t bits, unsigned n) noexcept { return starts(bits, n) != 0; }
  [[nodiscard]] static constexpr std::uint64_t multiples_of(unsigned alignment) noexcept {
    if (alignment == 1) [[likely]]
      return ~std::uint64_t{0};
    std::uint64_t mask = 1;
    for (unsigned step = alignment; step < kChunkSpans; step *= 2) mask |= mask << step;
    return mask;
  }
  [[nodiscard]] static bool has_dirty(const ChunkType& chunk) noexcept {
    return (chunk.free.load(Orders::kReread) & chunk.dirty.load(std::memory_order_relaxed)) != 0;
  }

  [[nodiscard]] TakenSpans taken(ChunkType& chunk, SpanIndex first, std::uint64_t mask) const noexcept {
    // relaxed: the acquire of the taking exchange made what the givers wrote visible.
    const std::uint64_t dirty = chunk.dirty.load(std::memory_order_relaxed) & mask;
    const bool all = dirty == mask;
    return {first, static_cast<unsigned>(std::popcount(dirty)), all ? 0 : chunk.purged_at.load(std::memory_order_relaxed)};
  }

  [[nodiscard]] TakenSpans take_in(std::uint32_t c, const Search& s, bool only_dirty) noexcept {
    ChunkType& chunk = chunks_[c];
    if (chunk.kind.load(std::memory_order_relaxed) != s.kind) return {};
    std::uint64_t seen = chunk.free.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    while (seen != 0) {
      const std::uint64_t bits = only_dirty ? seen & chunk.dirty.load(std::memory_order_relaxed) : seen;
      const std::uint64_t fit = starts(bits, s.n) & multiples_of(s.alignment);
      if (fit == 0) return {};
      const unsigned low = base::lowest_bit(fit);
      const std::uint64_t mask = base::low_bits(s.n) << low;
      if (chunk.free.compare_exchange_weak(seen, seen & ~mask, Orders::kTake, std::memory_order_relaxed))
        return taken(chunk, c * kChunkSpans + low, mask);
    }
    return {};
  }

  // Its cursor is from a CPU of another node, which had the number before, or from before nodes were known. Relaxed: a hint.
  [[nodiscard]] bool is_elsewhere(std::uint32_t c, Searcher by) const noexcept {
    return by.node != 0 && chunks_[c].user.load(std::memory_order_relaxed) >> Searcher::kNodeShift != by.node;
  }
  [[nodiscard]] bool is_anothers(std::uint32_t c, const Search& s) const noexcept {
    const ChunkType& chunk = chunks_[c];
    const std::uint32_t user = chunk.user.load(std::memory_order_relaxed);  // relaxed, all of it: hints
    if (s.anywhere) return false;
    return s.by.is_apart_from(user) || (s.by.is_of_another_group(user) && holds_pages(chunk) && !is_idle(chunk, user, s));
  }
  // Nothing was freed there for long enough that its group, or node, is not about to take it again.
  [[nodiscard]] static bool is_idle(const ChunkType& chunk, std::uint32_t user, const Search& s) noexcept {
    return is_past(chunk.freed_at.load(std::memory_order_relaxed), s.now,
                   s.by.is_of_another_node(user) ? kNodeIdleMs : kGroupIdleMs);
  }
  [[nodiscard]] static bool holds_pages(const ChunkType& chunk) noexcept {
    return chunk.free.load(std::memory_order_relaxed) != kAll || chunk.dirty.load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] unsigned stripe_of_group(Searcher by) const noexcept {
    return by.cpu / Searcher::kGroupCpus & (stripes_ - 1);
  }
  // Relaxed: it was written before the chunk's spans could be had.
  [[nodiscard]] unsigned stripe_of(std::uint32_t c) const noexcept {
    return stripes_ == 1 ? 0 : chunks_[c].stripe.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t find_dirty_in(unsigned stripe, std::uint32_t from) noexcept {
    for (; stripe < stripes_; ++stripe, from = 0)
      if (const std::uint32_t c = trees_[kDirtyTree].find(from, stripe); c != kNoChunk) return c;
    return kNoChunk;
  }
  // Returns what look(stripe) finds in the group's own stripe, else in a few of the others, by turns.
  template <class Look>
  [[nodiscard]] TakenSpans in_stripes(const Search& s, Look&& look) noexcept {
    const unsigned own = stripe_of_group(s.by);
    TakenSpans t = look(own);
    if (t.first != kNoSpan || stripes_ == 1) return t;
    const unsigned others = s.anywhere ? stripes_ - 1 : std::min(stripes_ - 1, kLooks), turn = s.anywhere ? 0 : s.now;
    for (unsigned i = 0; i < others && t.first == kNoSpan; ++i) t = look((own + 1 + (turn + i) % (stripes_ - 1)) % stripes_);
    return t;
  }

  // Searches from where the CPU works on, and round: CPUs that search look at different chunks first.
  [[nodiscard]] TakenSpans take_dirty_in(unsigned stripe, const Search& s, std::uint32_t from, unsigned most) noexcept {
    Tree& tree = trees_[kDirtyTree];
    std::uint32_t c = tree.find(from, stripe);
    for (unsigned looks = 0; looks < most; ++looks, c = tree.find(c + 1, stripe)) {
      if (c == kNoChunk) {
        if (from == 0) break;
        c = tree.find(from = 0, stripe);
        if (c == kNoChunk) break;
      }
      if (is_anothers(c, s)) continue;
      if (const TakenSpans t = take_in(c, s, true); t.first != kNoSpan) return t;
    }
    return {};
  }

  // Chunks with a free run of the greatest power of two up to n may do; those of the next power of two surely do.
  [[nodiscard]] TakenSpans take_in_stripe(unsigned stripe, const Search& s) noexcept {
    if (s.kind == ChunkKind::kSlots) return take_in_tree(kSlotTree, stripe, 1, s, ~0U);
    const unsigned below = static_cast<unsigned>(std::bit_width(s.n)) - 1;
    if (const TakenSpans t = take_in_tree(kRunTrees + below, stripe, 1U << below, s, s.anywhere ? ~0U : kLooks);
        t.first != kNoSpan)
      return t;
    // An aligned run of n lies in every free run of n + alignment - 1.
    const unsigned most = s.n + s.alignment - 1 < kChunkSpans ? s.n + s.alignment - 1 : kChunkSpans;
    const unsigned above = static_cast<unsigned>(std::bit_width(most - 1));
    return take_in_tree(kRunTrees + above, stripe, 1U << above, s, ~0U);
  }

  // Chunks of a tree that turn out to have no run of `promised` spans leave it.
  [[nodiscard]] TakenSpans take_in_tree(unsigned t, unsigned stripe, unsigned promised, const Search& s,
                                        unsigned looks) noexcept {
    Tree& tree = trees_[t];
    for (std::uint32_t c = tree.find(0, stripe); c != kNoChunk; c = tree.find(c + 1, stripe)) {
      if (is_anothers(c, s)) continue;
      if (const TakenSpans found = take_in(c, s, false); found.first != kNoSpan) return found;
      ChunkType& chunk = chunks_[c];
      if (!has_run(chunk.free.load(std::memory_order_relaxed), promised))
        tree.retire(c, [&] { return has_run(chunk.free.load(Orders::kReread), promised); }, stripe);
      else if (looks-- == 0)
        break;
    }
    return {};
  }

  // A CPU leaves the chunk where it worked and says where it works now.
  void move_to(std::uint32_t c, Searcher by, Cursor& cursor) noexcept {
    const std::uint32_t before = cursor.load(std::memory_order_relaxed);  // relaxed, all of it: hints
    if (before == c) return;
    if (before != kNoChunk) {
      const std::uint32_t user = chunks_[before].user.load(std::memory_order_relaxed);
      if (by.works_as(user)) chunks_[before].user.store(user & ~Searcher::kWorks, std::memory_order_relaxed);
    }
    cursor.store(c, std::memory_order_relaxed);
    chunks_[c].user.store(by.as_user(), std::memory_order_relaxed);
  }

  // Sets free bits, then the trees' of the run that they are part of now.
  void publish(std::uint32_t c, ChunkKind kind, std::uint64_t mask) noexcept {
    const std::uint64_t free = chunks_[c].free.fetch_or(mask, Orders::kGive) | mask;
    const unsigned stripe = stripe_of(c);
    if (kind == ChunkKind::kSlots) return trees_[kSlotTree].set(c, stripe);
    const unsigned low = base::lowest_bit(mask);
    const auto behind = static_cast<unsigned>(std::countr_one(free >> low));
    const auto before = low == 0 ? 0U : static_cast<unsigned>(std::countl_one(free << (64 - low)));
    const auto top = static_cast<unsigned>(std::bit_width(before + behind)) - 1;
    for (unsigned k = 0; k <= top; ++k) trees_[kRunTrees + k].set(c, stripe);
  }

  ChunkType* chunks_ = nullptr;
  unsigned stripes_ = 1;
  Tree trees_[kTrees];
};

}  // namespace freehold::alloc
