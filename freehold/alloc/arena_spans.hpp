// SPDX-License-Identifier: MIT
// Where the arena's spans come from: its address space and tables, new chunks, free spans that are taken and given; see
// arena.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>

#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

// ---- start ----------------------------------------------------------------------------------------------------------

// The words of the trees over spans: stripe by stripe, each with a word of every class on lines of its own, so that the
// thread whose stripe it is shares lines and pages with few; behind them a line for empties_ and drained_.
template <class Classes>
struct TreeWords {
  static constexpr std::size_t kLine = base::kCacheLine / sizeof(std::uint64_t);
  static constexpr std::size_t kStripe = base::align_up(Classes::kCount - 1, kLine);
  [[nodiscard]] static constexpr std::size_t stride(unsigned stripes) noexcept { return stripes * kStripe + kLine; }
};

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::lay_out_tables(std::size_t spans) noexcept {
  constexpr unsigned kChunkShift = std::bit_width(kChunkSpans) - 1;
  space_ = {};
  const auto add_tree = [&](std::size_t bits, unsigned shift, std::size_t stride) {
    unsigned first = 0;
    for (std::size_t words = base::ceil_div(bits, 64), level = 0;; words = base::ceil_div(words, 64), ++level) {
      shift += 6;
      const unsigned t = space_.add_table(stride * sizeof(Word), shift, words, level != 0);
      if (level == 0) first = t;
      if (words == 1) return first;
    }
  };
  table_numbers_[0] = space_.add_table(sizeof(ClassByte), 0, spans);
  table_numbers_[1] = space_.add_table(sizeof(SpanHints<A>), 0, spans);
  table_numbers_[2] = space_.add_table(sizeof(HintWord), 0, spans);  // pages of runs
  table_numbers_[3] = space_.add_table(sizeof(SpanType), 0, spans);
  table_numbers_[4] = space_.add_table(Config::kWordsPerSpan * sizeof(Word), 0, spans);
  table_numbers_[7] = space_.add_table(kFewWords * sizeof(Word), 0, spans);
  table_numbers_[5] = space_.add_table(sizeof(Chunk<A>), kChunkShift, spans / kChunkSpans);
  (void)add_tree(spans / kChunkSpans, kChunkShift, Chunks::kTrees);
  table_numbers_[6] = add_tree(spans, 0, TreeWords<Classes>::stride(settings_.stripes));
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::attach_tables(std::size_t spans) noexcept {
  const auto table = [&]<class T>(unsigned t, T*& to) { to = static_cast<T*>(space_.table(t)); };
  table(table_numbers_[0], span_class_);
  table(table_numbers_[1], span_hints_);
  table(table_numbers_[2], run_pages_);
  table(table_numbers_[3], spans_);
  table(table_numbers_[4], storages_[0].words.first);
  table(table_numbers_[7], storages_[1].words.first);
  storages_[0].words.set_size(Config::kWordsPerSpan);
  storages_[1].words.set_size(kFewWords);
  chunks_.attach(static_cast<Chunk<A>*>(space_.table(table_numbers_[5])),
                 static_cast<Word*>(space_.table(table_numbers_[5] + 1)), spans / kChunkSpans);
  using Trees = TreeWords<Classes>;
  const std::size_t stride = Trees::stride(settings_.stripes);
  Word* const words = static_cast<Word*>(space_.table(table_numbers_[6]));
  empties_.attach(words + stride - Trees::kLine, stride, spans);
  drained_.attach(words + stride - Trees::kLine + 1, stride, spans);
  for (const SizeClass c : AllClasses<Classes>{}) {
    const auto bytes = static_cast<std::uint32_t>(Classes::slot_bytes(c));
    geometry_[c] = pool::SlotGeometry::of(base_, kSpanShift, bytes);
    pools_[c].attach(&storages_[table_of(c)], c.index(), {static_cast<std::uint32_t>(kSpanBytes / bytes)},
                     words + c.index() - 1, stride, spans, settings_.stripes, Trees::kStripe);
  }
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::init(Pages& pages, const ArenaSettings& settings) noexcept {
  pages_ = &pages;
  settings_ = settings;
  settings_.purge_delay_ms = std::min(settings.purge_delay_ms, kMostDelayMs);
  limit_.store(settings.limit_bytes, std::memory_order_relaxed);
  const std::size_t spans = settings.capacity_bytes >> kSpanShift;
  lay_out_tables(spans);
  if (!space_.init(pages, settings.capacity_bytes)) return false;
  base_ = reinterpret_cast<std::uintptr_t>(space_.memory());
  attach_tables(spans);
  max_chunks_ = static_cast<std::uint32_t>(spans / kChunkSpans);
  // Under a small limit of addresses a chunk is a large part of what there is, thread stacks included: CPUs share them.
  chunks_are_dear_.store(pages.address_limit() / kChunkBytes < kManyChunks, std::memory_order_relaxed);
  return true;
}

// ---- growing --------------------------------------------------------------------------------------------------------

// The chunk that `kind` gets next; kNoChunk: the address space is used up. Extents grow with their kind; at the end of the
// address space one kind takes what is set aside for the other.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint32_t Arena<A, Config, Pages>::next_chunk(ChunkKind kind) noexcept {
  Extent& mine = extents_[static_cast<unsigned>(kind)];
  if (mine.next < mine.end) return mine.next;
  if (chunks_end_ < max_chunks_) {
    const std::uint32_t want = std::clamp(mine.chunks / 2, 1U, Config::kMaxExtentChunks);
    mine.next = chunks_end_;
    mine.end = chunks_end_ = std::min(max_chunks_, chunks_end_ + want);
    return mine.next;
  }
  Extent& theirs = extents_[static_cast<unsigned>(other(kind))];
  if (theirs.next == theirs.end) return Chunks::kNoChunk;
  --theirs.end;
  mine.next = theirs.end;
  mine.end = mine.next + 1;
  return mine.next;
}

// Maps spans of a chunk. False: the system refuses, errno says why.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::map_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind) noexcept {
  const SpanIndex first = chunk * kChunkSpans + from;
  const std::size_t bytes = (end - from) * kSpanBytes;
  if (!space_.map_memory(first * kSpanBytes, bytes)) return false;
  void* const memory = reinterpret_cast<void*>(address(first));
  // Under mlockall() a chunk costs all of its memory at once: CPUs share chunks then.
  if (pages_->is_locked(static_cast<char*>(memory) + bytes - kSpanBytes))
    chunks_are_dear_.store(true, std::memory_order_relaxed);
  Extent& extent = extents_[static_cast<unsigned>(kind)];
  advise_spans(chunk, from, end, kind, chunk == extent.first ? 0 : extent.chunks);
  if (settings_.prefault) pages_->populate(memory, bytes);
  return true;
}

// Maps more of the kind's first chunk: room for n spans at least. False: it is mapped, or cannot be.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::open_more(ChunkKind kind, unsigned n) noexcept {
  Extent& extent = extents_[static_cast<unsigned>(kind)];
  if (extent.first == Chunks::kNoChunk || extent.open + n > extent.most) return false;
  const unsigned from = extent.open, end = std::min(std::bit_ceil(std::max(from * 4, from + n)), kChunkSpans);
  if (!map_spans(extent.first, from, end, kind)) {
    if (errno == EEXIST) extent.most = from;  // something else has come there, and stays
    return false;
  }
  extent.open = end;
  chunks_.give(extent.first * kChunkSpans + from, end - from, false, 0);
  return true;
}

// Whether the span is one that was mapped. Call at rest.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::is_open(SpanIndex i) const noexcept {
  return std::none_of(std::begin(extents_), std::end(extents_), [i](const Extent& extent) {
    return i / kChunkSpans == extent.first && i % kChunkSpans >= extent.open;
  });
}

// New memory for n spans, in a chunk that the CPU may work in.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::grow(ChunkKind kind, unsigned n, unsigned cpu) noexcept {
  Extent& extent = extents_[static_cast<unsigned>(kind)];
  const bool is_first = extent.first == Chunks::kNoChunk;
  // Relaxed: a hint.
  if (!is_first && chunks_.chunk(extent.first).user.load(std::memory_order_relaxed) == cpu + 1 && open_more(kind, n))
    return true;
  // Not with threads on several CPUs: one whose chunk is small would take spans of another's. Relaxed: a hint.
  const bool in_steps = kFirstSpans < kChunkSpans && is_first && shard_mask_.load(std::memory_order_relaxed) == 0;
  const unsigned spans = in_steps ? std::max(kFirstSpans, std::bit_ceil(n)) : kChunkSpans;
  std::uint32_t c;
  std::size_t end;
  for (;; ++extent.next) {  // a foreign mapping in a chunk stays there: the next one serves
    c = next_chunk(kind);
    if (c == Chunks::kNoChunk) return open_more(kind, n);
    end = (std::size_t{c} + 1) * kChunkSpans;
    if (!space_.grow_tables(end)) return false;
    if (map_spans(c, 0, spans, kind)) break;
    if (errno != EEXIST) return false;
  }
  if (is_first) {
    extent.first = c;
    extent.open = spans;
  }
  ++extent.next;
  ++extent.chunks;
  // Before the chunk's spans can be had: relaxed, published with them.
  if (end > span_count()) {
    span_count_.store(end, std::memory_order_relaxed);
    if constexpr (requires { Config::note_span_count(end); }) Config::note_span_count(end);
  }
  chunks_.add(c, kind, cpu, spans);
  return true;
}

// Huge pages only once the heap is clearly not small: a small program pays for what it uses, also where the system's
// default would be huge, and on however many CPUs it has a chunk (`chunks` of the kind before this one). Never asked for
// under runs, of which only the last span's first pages may be touched.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::advise_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind,
                                           std::uint32_t chunks) noexcept {
  const auto advise = [&](unsigned behind, bool wanted) {
    if (from < behind)
      pages_->advise_huge(reinterpret_cast<void*>(address(chunk * kChunkSpans + from)), (behind - from) * kSpanBytes,
                          wanted);
  };
  const bool off = settings_.huge_pages == HugePages::kOff;
  const bool small = settings_.huge_pages == HugePages::kAuto &&
                     budget_.class_span_bytes() < static_cast<std::int64_t>(Config::kHugeAfterBytes) * std::max(chunks, 1U);
  if (kind == ChunkKind::kRuns) {
    if (off || runs_forbidden_.load(std::memory_order_relaxed)) return advise(end, false);
    if (chunks == 0 && small) advise(std::min(end, kHugeSpans), false);
    return;
  }
  advise(end, !off && !small);
  if (off || small) return;
  unsigned parts = 0;
  for (unsigned part = 0; part < kHugeParts; ++part)
    if (from <= part * kHugeSpans && (part + 1) * kHugeSpans <= end) parts |= 1U << part;
  // relaxed: published with the spans.
  chunks_.chunk(chunk).huge.fetch_or(static_cast<std::uint8_t>(parts), std::memory_order_relaxed);
  huge_parts_.fetch_add(std::popcount(parts), std::memory_order_relaxed);
}

// The caller took a clean span: if all of its huge page is clean and free, that is as good as new. The first of a chunk that
// was new to a small program stays small.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::ask_for_huge_page(const TakenSpans& t) noexcept {
  if (settings_.huge_pages == HugePages::kOff) return;
  const std::uint32_t c = t.first / kChunkSpans;
  const unsigned part = t.first % kChunkSpans / kHugeSpans;
  const auto& chunk = chunks_.chunk(c);
  // relaxed, all of it: hints.
  if ((chunk.huge.load(std::memory_order_relaxed) >> part & 1) != 0 ||
      chunk.kind.load(std::memory_order_relaxed) != ChunkKind::kSlots)
    return;
  const std::uint64_t all = base::low_bits(kHugeSpans) << part * kHugeSpans;
  const std::uint64_t free = chunk.free.load(std::memory_order_relaxed) | Chunks::mask_of(t.first, 1);
  if ((free & all) != all || (chunk.dirty.load(std::memory_order_relaxed) & all) != 0) return;
  if (settings_.huge_pages == HugePages::kAuto &&
      (budget_.class_span_bytes() < static_cast<std::int64_t>(Config::kHugeAfterBytes) ||
       (t.purged_at == 0 && free == Chunks::kAll)))
    return;
  set_huge(c, part, true);
}

// Asks for a huge page under a part of a chunk, or forbids it. Where that made the arena many mappings, it becomes one
// again.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::set_huge(std::uint32_t chunk, unsigned part, bool wanted) noexcept {
  auto& huge = chunks_.chunk(chunk).huge;
  const auto bit = static_cast<std::uint8_t>(1U << part);
  const auto others = static_cast<std::uint8_t>(~bit);
  // relaxed: a hint, and which thread changed it.
  const std::uint8_t before =
      wanted ? huge.fetch_or(bit, std::memory_order_relaxed) : huge.fetch_and(others, std::memory_order_relaxed);
  if (((before & bit) != 0) == wanted) return;
  huge_parts_.fetch_add(wanted ? 1 : -1, std::memory_order_relaxed);
  pages_->advise_huge(reinterpret_cast<void*>(address(chunk * kChunkSpans + part * kHugeSpans)), kHugeBytes, wanted);
  if (huge_borders_.fetch_add(2, std::memory_order_relaxed) >= kMostBorders) forbid_huge_pages(ChunkKind::kSlots);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::forbid_huge_pages(ChunkKind kind) noexcept {
  const auto count = static_cast<std::uint32_t>(span_count() / kChunkSpans);
  for (std::uint32_t c = 0, end; c < count; c = end + 1) {
    for (end = c; end < count && chunks_.chunk(end).kind.load(std::memory_order_relaxed) == kind; ++end) {
      const auto parts = chunks_.chunk(end).huge.exchange(0, std::memory_order_relaxed);  // relaxed: hints
      huge_parts_.fetch_sub(std::popcount(parts), std::memory_order_relaxed);
    }
    if (end > c) pages_->advise_huge(reinterpret_cast<void*>(address(c * kChunkSpans)), (end - c) * kChunkBytes, false);
  }
  if (kind == ChunkKind::kSlots) huge_borders_.store(0, std::memory_order_relaxed);
}

// ---- free spans -----------------------------------------------------------------------------------------------------

// Free spans from wherever there are some; accounted for as no longer free.
template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_spans(ChunkKind kind, unsigned n, unsigned alignment, bool reuse,
                                               std::uint64_t now) noexcept {
  Shard& shard = shards_[shard_number()];
  TakenSpans t = take_or_reuse(kind, n, alignment, shard, reuse);
  if (t.first == kNoSpan) t = take_or_grow(kind, n, alignment, shard);
  if (t.first == kNoSpan) t = take_anywhere(kind, n, alignment, shard, now);
  if (t.first == kNoSpan) return t;
  (void)budget_.spans_changed(shard.budget, -static_cast<std::int64_t>(t.dirty * kSpanBytes), 0);
  if (t.dirty == n || may_use_fresh(t, n, now)) return t;
  give_untouched(t, n);
  return {};
}

// Before clean memory, spans of classes that have become wholly free; for a span of a class (`reuse`) one of another class.
template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_or_reuse(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard,
                                                  bool reuse) noexcept {
  const auto cpu = static_cast<unsigned>(&shard - shards_);
  const bool anywhere = chunks_are_dear_.load(std::memory_order_relaxed);
  TakenSpans t = chunks_.take(kind, n, alignment, cpu, shard.cursor(kind), anywhere);
  if (t.dirty != n && !reuse && reclaim_for_runs()) {
    if (t.first != kNoSpan) chunks_.give_untouched(t, n);
    t = chunks_.take(kind, n, alignment, cpu, shard.cursor(kind), anywhere);
  }
  if (!reuse || t.dirty != 0) return t;
  const SpanIndex i = reclaim_empty_span(0);
  if (i == kNoSpan) return t;
  if (t.first != kNoSpan) chunks_.give_untouched(t, n);
  (void)budget_.spans_changed(shard.budget, static_cast<std::int64_t>(kSpanBytes), 0);
  return {i, 1, 0};
}

// Wholly free spans of classes among the runs become free spans, a few of them. Returns whether there were some.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::reclaim_for_runs() noexcept {
  constexpr unsigned kMost = Config::kReclaimedForRuns, kLooks = 4 * kMost;
  unsigned reclaimed = 0;
  if constexpr (kMost != 0) {
    SpanIndex i = empties_.find(0);
    for (unsigned looks = 0; i != Tree::kNone && looks < kLooks && reclaimed < kMost; ++looks, i = empties_.find(i + 1)) {
      // Relaxed: the kind of a chunk in use does not change.
      if (chunks_.chunk(i / kChunkSpans).kind.load(std::memory_order_relaxed) != ChunkKind::kRuns) continue;
      if (!leave_empties(i)) continue;
      give_spans(i, 1, 0, false);
      ++reclaimed;
    }
  }
  return reclaimed != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_or_grow(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard) noexcept {
  constexpr unsigned kTries = 4;  // others may take the new chunk's spans before us
  const auto cpu = static_cast<unsigned>(&shard - shards_);
  const sync::Guard guard(grow_lock_);
  for (unsigned i = 0; i < kTries; ++i) {
    // Another thread may have grown while we waited.
    const bool anywhere = chunks_are_dear_.load(std::memory_order_relaxed);
    const TakenSpans t = chunks_.take(kind, n, alignment, cpu, shard.cursor(kind), anywhere);
    if (t.first != kNoSpan) return t;
    if (!grow(kind, n, cpu)) break;
  }
  return {};
}

// Memory is short: anything will do, and wholly free spans of every class become free spans.
template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_anywhere(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard,
                                                  std::uint64_t now) noexcept {
  const auto cpu = static_cast<unsigned>(&shard - shards_);
  for (const bool reclaimed : {false, true}) {
    if (reclaimed)
      for (SpanIndex i = reclaim_empty_span(0); i != kNoSpan; i = reclaim_empty_span(i + 1)) give_spans(i, 1, now);
    for (const ChunkKind k : {kind, other(kind)}) {
      const TakenSpans t = chunks_.take(k, n, alignment, cpu, shard.cursor(k), true);
      if (t.first != kNoSpan) return t;
    }
  }
  return {};
}

// Whether the limit allows for the clean ones of n spans, of which the dirty ones are accounted for as no longer free and
// not yet as used; regrets that they are clean.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::may_use_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept {
  if (limit() != 0 && !admit(std::size_t{n} * kSpanBytes, now)) return false;
  regret_fresh(t, n, now);
  return true;
}
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::regret_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept {
  if (BudgetType::is_soon(t.purged_at, now)) budget_.regret(static_cast<std::int64_t>((n - t.dirty) * kSpanBytes), now);
}

// Puts the caller's spans among the free ones; they may hold pages.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::give_spans(SpanIndex first, unsigned n, std::uint64_t now, bool just_now) noexcept {
  chunks_.give(first, n, true, static_cast<std::uint32_t>(now), just_now);
  (void)budget_.spans_changed(shards_[shard_number()].budget, static_cast<std::int64_t>(n * kSpanBytes), 0);
  note_due();
}

// The same for spans that were not touched since they were taken: clean ones are still clean.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::give_untouched(const TakenSpans& t, unsigned n) noexcept {
  chunks_.give_untouched(t, n);
  (void)budget_.spans_changed(shards_[shard_number()].budget, static_cast<std::int64_t>(t.dirty * kSpanBytes), 0);
  note_due();
}

// Reports changes of free and of used spans; relieves if they break the budget.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::account(std::int64_t dirty_spans, std::int64_t run_spans, std::uint64_t now) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  const bool reported = budget_.spans_changed(shards_[shard_number()].budget, dirty_spans * kBytes, run_spans * kBytes);
  if (reported && run_spans < 0 && budget_.excess() > slack())
    relieve(now, static_cast<std::size_t>(-run_spans) << kSpanShift);
}

}  // namespace freehold::alloc
