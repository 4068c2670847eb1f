// The slow parts of Arena; see arena.hpp. How memory goes back stands in arena_purge.hpp.
#pragma once
#include <cerrno>
#include <utility>

#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

// ---- start ------------------------------------------------------------------------------------------------------------

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
  table_numbers_[1] = space_.add_table(sizeof(HintWord), 0, spans);  // last users
  table_numbers_[2] = space_.add_table(sizeof(HintWord), 0, spans);  // pages of runs
  table_numbers_[3] = space_.add_table(sizeof(SpanType), 0, spans);
  table_numbers_[4] = space_.add_table(sizeof(Chunk<A>), kChunkShift, spans / kChunkSpans);
  // Class 0 is not a class: its stripes are empties_ and drained_ (a stripe of its own behind, if there is but one).
  (void)add_tree(spans / kChunkSpans, kChunkShift, Chunks::kTrees);
  table_numbers_[5] = add_tree(spans, 0, Classes::kCount * settings_.stripes + 1);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::attach_tables(std::size_t spans) noexcept {
  const auto table = [&]<class T>(unsigned t, T*& to) { to = static_cast<T*>(space_.table(t)); };
  table(table_numbers_[0], span_class_);
  table(table_numbers_[1], last_users_);
  table(table_numbers_[2], run_pages_);
  table(table_numbers_[3], spans_);
  chunks_.attach(static_cast<Chunk<A>*>(space_.table(table_numbers_[4])),
                 static_cast<Word*>(space_.table(table_numbers_[4] + 1)), spans / kChunkSpans);
  const std::size_t stripes = settings_.stripes;
  const std::size_t trees = Classes::kCount * stripes + 1;
  Word* const words = static_cast<Word*>(space_.table(table_numbers_[5]));
  empties_.attach(words, trees, spans);
  drained_.attach(words + Classes::kCount * stripes, trees, spans);
  for (const SizeClass c : AllClasses<Classes>{}) {
    const auto bytes = static_cast<std::uint32_t>(Classes::slot_bytes(c));
    geometry_[c] = pool::SlotGeometry::of(base_, kSpanShift, bytes);
    pools_[c].attach(&storage_, c.index(), {static_cast<std::uint32_t>(kSpanBytes / bytes)}, words + c.index() * stripes,
                     trees, spans, settings_.stripes);
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
  return true;
}

// ---- growing ----------------------------------------------------------------------------------------------------------

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

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::grow(ChunkKind kind, unsigned cpu) noexcept {
  Extent& extent = extents_[static_cast<unsigned>(kind)];
  std::uint32_t c;
  std::size_t end;
  for (;; ++extent.next) {  // somebody else's mapping in a chunk stays there: the next one serves
    c = next_chunk(kind);
    if (c == Chunks::kNoChunk) return false;
    end = (std::size_t{c} + 1) * kChunkSpans;
    if (!space_.grow_tables(end)) return false;
    if (space_.map_memory(std::size_t{c} * kChunkBytes, kChunkBytes)) break;
    if (errno != EEXIST) return false;
  }
  // Under mlockall() a chunk costs all of its memory at once: CPUs share chunks then.
  if (pages_->is_resident(reinterpret_cast<void*>(address(static_cast<SpanIndex>(end - 1)))))
    memory_is_locked_.store(true, std::memory_order_relaxed);
  advise_chunk(c, kind, extent.chunks == 0);
  if (settings_.prefault) pages_->populate(reinterpret_cast<void*>(address(c * kChunkSpans)), kChunkBytes);
  ++extent.next;
  ++extent.chunks;
  // Before the chunk's spans can be had: relaxed, published with them.
  if (end > span_count()) {
    span_count_.store(end, std::memory_order_relaxed);
    if constexpr (requires { Config::note_span_count(end); }) Config::note_span_count(end);
  }
  chunks_.add(c, kind, cpu);
  return true;
}

// Huge pages only once the heap is clearly not small: a small program pays for what it uses, also where the system's
// default would be huge. Never asked for under runs, of which only the last span's first pages may be touched.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::advise_chunk(std::uint32_t chunk, ChunkKind kind, bool first) noexcept {
  const std::uintptr_t at = address(chunk * kChunkSpans);
  const auto advise = [&](std::size_t from, std::size_t end, bool wanted) {
    if (from < end) pages_->advise_huge(reinterpret_cast<void*>(at + from), end - from, wanted);
    if (wanted) some_huge_.store(true, std::memory_order_relaxed);
  };
  const std::size_t small = first && settings_.huge_pages == HugePages::kAuto ? Config::kHugeAfterBytes : 0;
  if (settings_.huge_pages == HugePages::kOff)
    advise(0, kChunkBytes, false);
  else
    advise(0, small, false);
  if (settings_.huge_pages != HugePages::kOff && kind == ChunkKind::kSlots) advise(small, kChunkBytes, true);
}

// For a span of a class (`reuse`): before clean memory, a span of another class that has become wholly free.
template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_or_reuse(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard,
                                                  bool reuse) noexcept {
  const auto cpu = static_cast<unsigned>(&shard - shards_);
  const bool anywhere = memory_is_locked_.load(std::memory_order_relaxed);
  const TakenSpans t = chunks_.take(kind, n, alignment, cpu, shard.cursor(kind), anywhere);
  if (!reuse || t.dirty != 0) return t;
  const SpanIndex i = reclaim_empty_span(0);
  if (i == kNoSpan) return t;
  if (t.first != kNoSpan) chunks_.give_untouched(t, n);
  (void)budget_.spans_changed(shard.budget, static_cast<std::int64_t>(kSpanBytes), 0);
  return {i, 1, 0};
}

template <sync::Atomics A, class Config, os::PageSource Pages>
TakenSpans Arena<A, Config, Pages>::take_or_grow(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard) noexcept {
  constexpr unsigned kTries = 4;  // others may take the new chunk's spans before us
  const auto cpu = static_cast<unsigned>(&shard - shards_);
  const sync::Guard guard(grow_lock_);
  for (unsigned i = 0; i < kTries; ++i) {
    // Another thread may have grown while we waited.
    const bool anywhere = memory_is_locked_.load(std::memory_order_relaxed);
    const TakenSpans t = chunks_.take(kind, n, alignment, cpu, shard.cursor(kind), anywhere);
    if (t.first != kNoSpan) return t;
    if (!grow(kind, cpu)) break;
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

// Puts spans that are nobody's among the free ones; they may hold pages.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::give_spans(SpanIndex first, unsigned n, std::uint64_t now, bool just_now) noexcept {
  chunks_.give(first, n, true, static_cast<std::uint32_t>(now), just_now);
  (void)budget_.spans_changed(shards_[shard_number()].budget, static_cast<std::int64_t>(n * kSpanBytes), 0);
  note_due();
}

// The same for spans that nobody touched since they were taken: what was clean is.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::give_untouched(const TakenSpans& t, unsigned n) noexcept {
  chunks_.give_untouched(t, n);
  (void)budget_.spans_changed(shards_[shard_number()].budget, static_cast<std::int64_t>(t.dirty * kSpanBytes), 0);
  note_due();
}

// ---- slots ------------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::give_slots(SizeClass c, void* const* slots, std::size_t n, pool::WordIndex& last) noexcept {
  pool::SlotGroups groups;
  pool::group_slots(geometry_[c], slots, n, groups);
  if (groups.misplaced != 0) [[unlikely]]
    base::fatal(base::HeapError::kInteriorPointer, reinterpret_cast<void*>(groups.misplaced));
  if (groups.repeated != 0) [[unlikely]]
    base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(groups.repeated));
  // The lines are fetched for writing all at once: the locked instructions below would wait for each in turn.
  Word* words[pool::kMaxBatch];
  for (std::size_t i = 0; i < groups.count; ++i) {
    words[i] = word_address(groups.groups[i].word);
    base::prefetch_for_write(words[i]);
  }
  const pool::SpanShape shape = pools_[c].shape();
  const unsigned last_word = shape.words() - 1;
  const std::uint64_t last_full = shape.full(last_word);
  for (std::size_t i = 0; i < groups.count; ++i) {
    auto [index, bits] = groups.groups[i];
    const unsigned word = pool::word_in_span(index);
    const std::uint64_t full = word < last_word ? ~std::uint64_t{0} : word == last_word ? last_full : 0;
    if ((bits & ~full) != 0) [[unlikely]] {  // the end of a span, too short for one more slot
      const unsigned beyond = base::lowest_bit(bits & ~full);
      base::fatal(base::HeapError::kInteriorPointer, reinterpret_cast<void*>(geometry_[c].address(index, beyond)));
      bits &= full;
    }
    if (const std::uint64_t twice = give_word(c, index, bits, full, *words[i]); twice != 0) [[unlikely]] {
      base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(geometry_[c].address(index, base::lowest_bit(twice))));
      (void)give_word(c, index, bits & ~twice, full, *words[i]);  // a test's handler returned: the others are innocent
      continue;
    }
    if (i == 0 || pool::span_of(index) != pool::span_of(last)) note_drained(pool::span_of(index));
    last = index;
  }
}

// ---- spans of classes -------------------------------------------------------------------------------------------------

// Takes every slot of span `i` of class `c`; the span is the caller's then, of no class. The class is asked again while we
// hold slots: until then the span may have changed hands.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::reclaim_span(SpanIndex i, SizeClass c) noexcept {
  Pool& pool = pools_[c];
  if (!pool.take_all(i)) {
    // What was missing may have come back while we held other words, unseen by the thread that brought it; and the span may
    // be another class's by now.
    if (const SizeClass now_c = class_of_span(i); now_c.is_slot() && pools_[now_c].looks_full(i)) empties_.set(i);
    return false;
  }
  if (class_of_span(i) != c) [[unlikely]] {
    for (unsigned w = 0; w < pool.shape().words(); ++w) put_back(pool::word_index(i, w), pool.shape().full(w));
    return false;
  }
  span_class_[i].store(0, std::memory_order_relaxed);  // relaxed: nobody holds a slot, so nobody asks; free spans publish it
  counters_.span_returns.fetch_add(1, std::memory_order_relaxed);
  drop_hints(i, false);
  budget_.class_spans(-static_cast<std::int64_t>(kSpanBytes));
  return true;
}

// Takes one wholly free span at or after `from` back from its class; the span is the caller's.
template <sync::Atomics A, class Config, os::PageSource Pages>
SpanIndex Arena<A, Config, Pages>::reclaim_empty_span(SpanIndex from) noexcept {
  for (SpanIndex i = empties_.find(from); i != Tree::kNone; i = empties_.find(i + 1)) {
    empties_.retire(i, [] { return false; });
    if (const SizeClass c = class_after_leaving(i); c.is_slot() && reclaim_span(i, c)) return i;
  }
  return kNoSpan;
}

// A span that is the caller's: free and warm, or of another class that has become wholly free, or clean.
template <sync::Atomics A, class Config, os::PageSource Pages>
SpanIndex Arena<A, Config, Pages>::span_for(SizeClass c, std::uint64_t now) noexcept {
  const ChunkKind kind = chunk_kind_of(c);
  const TakenSpans t = take_spans(kind, 1, 1, true, now);
  if (t.first == kNoSpan || kind != ChunkKind::kSlots || t.dirty != 0) return t.first;
  // The first span of a chunk that is wholly clean: as good as new, so huge pages pay again.
  const auto& chunk = chunks_.chunk(t.first / kChunkSpans);
  if (t.purged_at != 0 && chunk.dirty.load(std::memory_order_relaxed) == 0 &&
      std::popcount(chunk.free.load(std::memory_order_relaxed)) == static_cast<int>(kChunkSpans) - 1)
    advise_chunk(t.first / kChunkSpans, chunk.kind.load(std::memory_order_relaxed), false);
  return t.first;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
pool::Taken Arena<A, Config, Pages>::claim(SizeClass c, unsigned keep, std::uint32_t thread_id, std::uint64_t now) noexcept {
  const SpanIndex i = span_for(c, now);
  if (i == kNoSpan) return {};
  last_users_[i].store(pool::LastUser::active(thread_id).value, std::memory_order_relaxed);
  auto& chunk = chunks_.chunk(i / kChunkSpans);
  if (!chunk.has_records.load(std::memory_order_relaxed)) chunk.has_records.store(true, std::memory_order_relaxed);
  counters_.span_claims.fetch_add(1, std::memory_order_relaxed);
  budget_.class_spans(kSpanBytes);
  span_class_[i].store(static_cast<std::uint8_t>(c.index()), Config::SpanOrders::kSetClass);
  return pools_[c].publish(i, keep);
}

// ---- runs -------------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
RunPlace Arena<A, Config, Pages>::allocate_run(std::uint32_t pages, unsigned alignment, std::uint64_t now) noexcept {
  const unsigned n = spans_of(pages);
  const TakenSpans t = take_spans(ChunkKind::kRuns, n, alignment, false, now);
  if (t.first == kNoSpan) return {};
  run_pages_[t.first].store(pages, std::memory_order_relaxed);  // relaxed: the block is the caller's alone
  account(0, n, now);
  return {t.first, t.dirty == 0};
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::free_run(SpanIndex first, std::uint64_t now) noexcept {
  // Relaxed: an exchange, so that of two frees one sees the other; what the user wrote, the give publishes.
  const std::uint32_t pages = run_pages_[first].exchange(0, std::memory_order_relaxed);
  if (pages == 0) return false;
  const unsigned n = spans_of(pages);
  chunks_.give(first, n, true, static_cast<std::uint32_t>(now));
  note_due();
  account(n, -static_cast<std::int64_t>(n), now);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::resize_run(SpanIndex first, std::uint32_t pages, std::uint64_t now) noexcept {
  const unsigned old = spans_of(run_pages(first)), n = spans_of(pages);
  if (n > old) {
    if (first % kChunkSpans + n > kChunkSpans) return false;
    const TakenSpans t = chunks_.take_exactly(first + old, n - old);
    if (t.first == kNoSpan) return false;
    account(-static_cast<std::int64_t>(t.dirty), n - old, now);
    if (t.dirty < n - old && limit() != 0 && !admit(0, now)) {
      account(0, -static_cast<std::int64_t>(n - old), now);
      give_untouched(t, n - old);
      return false;
    }
  }
  run_pages_[first].store(pages, std::memory_order_relaxed);
  if (n < old) {
    give_spans(first + n, old - n, now);
    account(0, -static_cast<std::int64_t>(old - n), now);
  }
  return true;
}

// ---- spans that threads keep -------------------------------------------------------------------------------------------

// A run of `pages` at `first`, whose `n` spans `mask` (the new ones of a run that grows) come out of what the caller keeps.
// Returns whether all of these read as zero; nothing: under a limit the arena asks for clean ones.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::optional<bool> Arena<A, Config, Pages>::use_reserved(Runs& runs, Reserved& from, std::uint64_t mask, unsigned n,
                                                          SpanIndex first, std::uint32_t pages, std::uint64_t now) noexcept {
  const std::uint64_t with_pages = from.dirty() & mask;
  auto dirty = n;
  if (with_pages != mask) {
    dirty = static_cast<unsigned>(std::popcount(with_pages));
    if (limit() != 0) return {};
    const auto& chunk = chunks_.chunk(from.chunk());
    regret_fresh({first, dirty, chunk.purged_at.load(std::memory_order_relaxed)}, n, now);
  }
  from.remove(mask);
  run_pages_[first].store(pages, std::memory_order_relaxed);  // relaxed: the block is the caller's alone
  runs.dirty_spans -= dirty;
  runs.run_spans += n;
  return dirty == 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
RunPlace Arena<A, Config, Pages>::allocate_reserved(Runs& runs, Reserved& from, std::uint32_t pages, unsigned alignment,
                                                    bool dirty, std::uint64_t now) noexcept {
  const unsigned n = spans_of(pages);
  const unsigned place = Chunks::find_run(dirty ? from.dirty() : from.free(), n, alignment);
  if (place == Chunks::kNoPlace) return {};
  const SpanIndex first = from.chunk() * kChunkSpans + place;
  const std::optional<bool> zero = use_reserved(runs, from, Chunks::mask_of(first, n), n, first, pages, now);
  return zero ? RunPlace{first, *zero} : RunPlace{};
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::resize_reserved(Runs& runs, Reserved& kept, SpanIndex first, std::uint32_t pages,
                                              std::uint64_t now) noexcept {
  const unsigned old = spans_of(run_pages(first)), n = spans_of(pages);
  if (n > old) {
    if (first % kChunkSpans + n > kChunkSpans) return false;
    const std::uint64_t mask = Chunks::mask_of(first + old, n - old);
    return (kept.free() & mask) == mask && use_reserved(runs, kept, mask, n - old, first, pages, now);
  }
  run_pages_[first].store(pages, std::memory_order_relaxed);  // relaxed: the block is the caller's
  if (n < old) free_reserved(runs, kept, first + n, (old - n) * kPagesPerSpan);
  return true;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::free_reserved(Runs& runs, Reserved& to, SpanIndex first, std::uint32_t pages) noexcept {
  const unsigned n = spans_of(pages);
  // Relaxed: the block is the caller's. No exchange: it would wait for all that the program has just written.
  run_pages_[first].store(0, std::memory_order_relaxed);
  to.add(Chunks::mask_of(first, n), ~std::uint64_t{0});
  runs.dirty_spans += n;
  runs.run_spans -= n;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::reserve(Reserved& to) noexcept {
  const std::uint64_t more = chunks_.reserve(to.chunk());
  if (more != 0) to.add(more, chunks_.dirty_among(to.chunk(), more));
  return more != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::is_worth_reserving(SpanIndex i) const noexcept {
  // Relaxed, all of it: the kind of a chunk in use does not change, the others are hints.
  if (memory_is_locked_.load(std::memory_order_relaxed) || limit() != 0) return false;
  if (spans_of(run_pages(i)) > kChunkSpans / 2) return false;
  const auto& chunk = chunks_.chunk(i / kChunkSpans);
  return chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kRuns && chunk.free.load(std::memory_order_relaxed) != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
const void* Arena<A, Config, Pages>::unreserve(Reserved& from, std::uint64_t now) noexcept {
  const std::uint64_t twice = chunks_.unreserve(from.chunk(), from.free(), from.dirty(), static_cast<std::uint32_t>(now));
  from.remove(~std::uint64_t{0});
  note_due();
  return twice == 0 ? nullptr : reinterpret_cast<const void*>(address(from.chunk() * kChunkSpans + base::lowest_bit(twice)));
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::report(Runs& runs) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  const std::int64_t dirty = std::exchange(runs.dirty_spans, 0), used = std::exchange(runs.run_spans, 0);
  return budget_.spans_changed(shards_[shard_number()].budget, dirty * kBytes, used * kBytes) &&
         budget_.excess() > kSlackBytes;
}

// Reports changes of free and of used spans; relieves if they break the budget.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::account(std::int64_t dirty_spans, std::int64_t run_spans, std::uint64_t now) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  const bool reported = budget_.spans_changed(shards_[shard_number()].budget, dirty_spans * kBytes, run_spans * kBytes);
  if (reported && run_spans < 0 && budget_.excess() > kSlackBytes)
    relieve(now, static_cast<std::size_t>(-run_spans) << kSpanShift);
}

// ---- invariants -------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint64_t Arena<A, Config, Pages>::free_dirty_bytes() const noexcept {
  std::uint64_t spans = 0;
  for (std::uint32_t c = 0; c < span_count() / kChunkSpans; ++c) {
    const auto& chunk = chunks_.chunk(c);
    spans += static_cast<unsigned>(
        std::popcount(chunk.free.load(std::memory_order_relaxed) & chunk.dirty.load(std::memory_order_relaxed)));
  }
  return spans << kSpanShift;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
template <class IsKept>
bool Arena<A, Config, Pages>::check_invariants(IsKept kept) noexcept {
  if (!chunks_.check_invariants(static_cast<std::uint32_t>(span_count() / kChunkSpans))) return false;
  bool good = true;
  SpanIndex run_end = 0;
  for_each_span([&](SpanIndex i, SizeClass c) {
    if (const std::uint32_t pages = run_pages(i); pages != 0) {
      good = good && !c.is_slot() && i >= run_end;
      run_end = i + spans_of(pages);
    }
    const int places = (chunks_.is_free(i) ? 1 : 0) + (c.is_slot() || i < run_end ? 1 : 0) + (kept(i) ? 1 : 0);
    good = good && places == 1;  // at rest nothing is on its way between two
    if (!c.is_slot()) return;
    good = good && pools_[c].check_span(i) && (!pools_[c].looks_full(i) || empties_.check_path(i));
  });
  return good;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::check_accounts(const Unreported& unreported) noexcept {
  std::int64_t live = 0, class_spans = 0, returned = 0, run_spans = 0;
  for_each_span([&](SpanIndex i, SizeClass c) {
    run_spans += spans_of(run_pages(i));
    returned += std::popcount(spans_[i].page_hints.load(std::memory_order_relaxed) & PageHints::kReturned);
    if (!c.is_slot()) return;
    ++class_spans;
    live += static_cast<std::int64_t>((pools_[c].shape().slots - pools_[c].free_slots(i)) * Classes::slot_bytes(c));
  });
  auto told = budget_.figures();
  for (const Shard& shard : shards_) {
    told.dirty += shard.budget.dirty.load(std::memory_order_relaxed);
    told.runs += shard.budget.runs.load(std::memory_order_relaxed);
  }
  constexpr auto kBytes = static_cast<std::int64_t>(kSpanBytes);
  told.dirty += unreported.dirty_spans * kBytes;
  told.runs += unreported.run_spans * kBytes;
  return told.live + unreported.slot_bytes == live && told.class_spans == class_spans * kBytes &&
         told.returned == returned * static_cast<std::int64_t>(Config::kPageBytes) && told.runs == run_spans * kBytes &&
         told.dirty == static_cast<std::int64_t>(free_dirty_bytes()) + unreported.kept_dirty_spans * kBytes;
}

}  // namespace freehold::alloc

#include "freehold/alloc/arena_purge.hpp"
