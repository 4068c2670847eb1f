// The slow parts of Arena; see arena.hpp.
#pragma once
#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

#define FREEHOLD_ARENA_TEMPLATE template <sync::Atomics A, class Config, os::PageSource Pages>
#define FREEHOLD_ARENA Arena<A, Config, Pages>

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::init(Pages& pages, const ArenaSettings& settings) noexcept {
  pages_ = &pages;
  settings_ = settings;
  const auto half_spans = static_cast<SpanIndex>(settings.half_bytes >> kSpanShift);
  const std::size_t count = std::size_t{half_spans} * 2;
  const SpanIndex first_step = settings.in_steps ? std::min<SpanIndex>(half_spans, Config::kReserveStepSpans) : half_spans;

  // Tables: owner bytes, holders, then the summary trees (one a class, and three of the arena's), each of zero pages.
  const std::size_t tree_words = pool::SummaryTree<A>::words_for(count);
  const std::size_t lanes = settings.lanes;
  const std::size_t trees = Classes::kCount * lanes + 2;  // class 0 is not a class: its first lane is empties_
  const std::size_t owner_bytes = base::align_up(count * sizeof(Owner), base::kCacheLine);
  const std::size_t holder_bytes = base::align_up(count * sizeof(HolderWord), base::kCacheLine);
  const std::size_t table_bytes =
      base::align_up(owner_bytes + holder_bytes + tree_words * trees * sizeof(Word), Config::kPageBytes);
  const std::size_t span_bytes = base::align_up((count + 1) * sizeof(SpanType), Config::kPageBytes);

  void* table = pages.map(table_bytes);
  if (table == nullptr) return false;
  void* spans = pages.reserve(span_bytes, Config::kPageBytes);
  void* memory = nullptr;
  if (spans != nullptr) {
    memory = settings.in_steps ? reserve_first_steps(std::size_t{first_step} << kSpanShift)
                               : pages.reserve(count << kSpanShift, Config::kBaseAlignment);
  }
  if (memory == nullptr) {
    if (spans != nullptr) pages.release(spans, span_bytes);
    pages.release(table, table_bytes);
    return false;
  }

  owner_ = Config::template table<Owner>(table, count);
  holders_ = Config::template table<HolderWord>(static_cast<char*>(table) + owner_bytes, count);
  spans_ = Config::template table<SpanType>(spans, count + 1);
  Word* words = Config::template table<Word>(static_cast<char*>(table) + owner_bytes + holder_bytes, tree_words * trees);
  empties_.attach(words, trees, count);
  dirty_free_.attach(words + Classes::kCount * lanes, trees, half_spans);
  clean_free_.attach(words + Classes::kCount * lanes + 1, trees, half_spans);
  base_ = reinterpret_cast<std::uintptr_t>(memory);
  for (unsigned c = 1; c < Classes::kCount; ++c) {
    const auto bytes = static_cast<std::uint32_t>(Classes::slot_bytes(c));
    geometry_[c] = pool::SlotGeometry::of(base_, kSpanShift, bytes);
    pools_[c].attach(&blocks_, c, {static_cast<std::uint32_t>(kSpanBytes / bytes)}, words + c * lanes, trees, count,
                     settings.lanes);
  }
  dense_ = {0, 0, 0, first_step, half_spans};
  run_ = {half_spans, half_spans, half_spans, half_spans + first_step, half_spans * 2};
  runs_.attach(spans_);
  span_count_ = count;  // last: until now nothing is ours
  return true;
}

// In steps, each half needs room behind it: places far from where the system puts mappings of its own, a few tries.
FREEHOLD_ARENA_TEMPLATE
void* FREEHOLD_ARENA::reserve_first_steps(std::size_t step_bytes) noexcept {
  for (unsigned attempt = 0; attempt < Config::kStepPlaces; ++attempt) {
    const std::uintptr_t lower = Config::step_place(attempt, settings_.half_bytes * 2);
    if (!pages_->reserve_at(reinterpret_cast<void*>(lower), step_bytes)) continue;
    if (pages_->reserve_at(reinterpret_cast<void*>(lower + settings_.half_bytes), step_bytes))
      return reinterpret_cast<void*>(lower);
    pages_->release(reinterpret_cast<void*>(lower), step_bytes);
  }
  return nullptr;
}

// ---- growing ----------------------------------------------------------------------------------------------------------

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::ensure_committed(Half& half, SpanIndex until) noexcept {
  if (until <= half.committed) return true;
  if (until > half.end) return false;
  if (until > half.reserved) {  // in steps: right behind what we have, or not at all
    const SpanIndex want = std::min<SpanIndex>(half.end, std::max(until, half.reserved + Config::kReserveStepSpans));
    const auto at = reinterpret_cast<void*>(address(half.reserved));
    if (pages_->reserve_at(at, std::size_t{want - half.reserved} << kSpanShift)) {
      half.reserved = want;
    } else if (pages_->reserve_at(at, std::size_t{until - half.reserved} << kSpanShift)) {
      half.reserved = until;
    } else {
      return false;
    }
  }
  // Doubling what there is, so that small programs commit little and steps end on huge-page boundaries.
  const SpanIndex step = std::clamp(half.committed - half.begin, Config::kFirstStepSpans, Config::kMaxStepSpans);
  SpanIndex target = std::min(half.reserved, std::max(until, half.committed + step));
  // The records first: a record without memory does no harm. Neighbours may share a page; committing twice is harmless.
  // One record more at either side, since merging looks at the neighbours.
  for (;;) {
    const auto records = reinterpret_cast<std::uintptr_t>(spans_ + (half.committed == 0 ? 0 : half.committed - 1));
    const auto records_end = reinterpret_cast<std::uintptr_t>(spans_ + target + 1);
    const std::uintptr_t from = base::align_down(records, Config::kPageBytes);
    const bool done =
        pages_->commit(reinterpret_cast<void*>(from), base::align_up(records_end - from, Config::kPageBytes)) &&
        pages_->commit(reinterpret_cast<void*>(address(half.committed)), std::size_t{target - half.committed} << kSpanShift);
    if (done) break;
    if (target == until) return false;
    target = until;  // the system would not give the whole step: ask for what is needed
  }
  // Huge pages only once the heap is clearly not small, and in whole steps: a small program pays for what it uses.
  const bool huge =
      settings_.huge_pages == HugePages::kOn || (settings_.huge_pages == HugePages::kAuto && &half == &dense_ &&
                                                 half.committed - half.begin >= Config::kHugeAfterSpans);
  if (huge)
    pages_->advise_huge(reinterpret_cast<void*>(address(half.committed)),
                        std::size_t{target - half.committed} << kSpanShift);
  half.committed = target;
  return true;
}

FREEHOLD_ARENA_TEMPLATE
SpanIndex FREEHOLD_ARENA::advance_frontier(Half& half, SpanIndex length) noexcept {
  if (length > half.end - half.frontier) return kNoSpan;
  if (!ensure_committed(half, half.frontier + length)) {
    if (!settings_.in_steps || !give_up_tail(&half == &dense_ ? run_ : dense_)) return kNoSpan;
    if (!ensure_committed(half, half.frontier + length)) return kNoSpan;
  }
  const SpanIndex first = half.frontier;
  half.frontier += length;
  grown_since_scan_ += length;
  return first;
}

// Where address space is limited, what one half does not use at its end is for the other: hands it back to the system.
FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::give_up_tail(Half& half) noexcept {
  release_empties(half, 0, false);
  if (&half == &dense_) {
    for (; half.frontier > half.begin && spans_[half.frontier - 1].state == SpanState::kFree; --half.frontier) {
      SpanType& span = spans_[half.frontier - 1];
      (span.dirty ? dirty_free_ : clean_free_).retire(half.frontier - 1, [] { return false; });
      --(span.dirty ? dirty_dense_ : clean_dense_);
      span.state = SpanState::kNone;
    }
  } else {
    for (SpanIndex i = half.frontier; i != kNoSpan; i = runs_.remove_before(half.frontier, half.begin)) half.frontier = i;
  }
  if (half.reserved == half.frontier) return false;
  pages_->release(reinterpret_cast<void*>(address(half.frontier)), std::size_t{half.reserved - half.frontier} << kSpanShift);
  half.committed = half.reserved = half.frontier;
  return true;
}

// ---- spans of classes -------------------------------------------------------------------------------------------------

// Takes one wholly free span of `half`, at or after `from`, back from its class; the span is the caller's, of no class.
// With `only_idle`, spans of which slots were handed out since the last such look are left alone: a thread that empties and
// fills its spans again and again keeps them, and its cache keeps their lines.
FREEHOLD_ARENA_TEMPLATE
SpanIndex FREEHOLD_ARENA::seize_empty(const Half& half, SpanIndex from, bool only_idle) noexcept {
  for (;; ++from) {
    from = empties_.find(from);
    if (from == pool::SummaryTree<A>::kNone || from >= half.frontier) return kNoSpan;
    const unsigned c = owner_[from].load(std::memory_order_relaxed);  // relaxed: changes under our lock only
    auto& hints = spans_[from].page_hints;
    if (only_idle && c != 0 && (hints.load(std::memory_order_relaxed) & PageHints::kLooked) == 0) {
      hints.store(hints.load(std::memory_order_relaxed) | PageHints::kLooked, std::memory_order_relaxed);
      continue;
    }
    empties_.retire(from, [] { return false; });
    if (c != 0 && pools_[c].seize(from)) {
      owner_[from].store(0, std::memory_order_relaxed);  // nobody holds a slot: nobody asks
      ++counters_.span_returns;
      return from;
    }
    // What was missing may have come back while we held other words, unseen by whoever brought it.
    if (c != 0 && pools_[c].looks_full(from)) empties_.set(from);
  }
}

FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::release_empties(const Half& half, std::uint64_t now, bool only_idle) noexcept {
  for (SpanIndex i = seize_empty(half, half.begin, only_idle); i != kNoSpan; i = seize_empty(half, i + 1, only_idle))
    release_span(i, now);
}

// Puts a span that is nobody's among the free ones; it may hold pages.
FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::release_span(SpanIndex i, std::uint64_t now) noexcept {
  spans_[i].page_hints.store(0, std::memory_order_relaxed);
  if (i >= run_.begin) return runs_.free(i, 1, true, now);
  spans_[i].state = SpanState::kFree;
  spans_[i].dirty = true;
  spans_[i].freed_at = now;
  dirty_free_.set(i);
  ++dirty_dense_;
}

FREEHOLD_ARENA_TEMPLATE
SpanIndex FREEHOLD_ARENA::span_for(unsigned c, std::uint64_t now) noexcept {
  if (!is_dense(c)) {
    if (runs_.dirty_spans() == 0)
      if (const SpanIndex i = seize_empty(run_, run_.begin, false); i != kNoSpan) return i;
    return allocate_run(1, 1, now).first;
  }
  const auto take_from = [&](pool::SummaryTree<A>& set, SpanIndex& count) {
    if (count == 0) return kNoSpan;
    const SpanIndex i = set.find(0);
    if (i == pool::SummaryTree<A>::kNone) return kNoSpan;
    set.retire(i, [] { return false; });
    --count;
    return i;
  };
  if (const SpanIndex i = take_from(dirty_free_, dirty_dense_); i != kNoSpan) return i;
  if (const SpanIndex i = seize_empty(dense_, dense_.begin, false); i != kNoSpan) return i;
  consider_scan(c);
  if (const SpanIndex i = take_from(clean_free_, clean_dense_); i != kNoSpan) {
    ++grown_since_scan_;
    return i;
  }
  if (const SpanIndex i = advance_frontier(dense_, 1); i != kNoSpan) return i;
  return allocate_run(1, 1, now).first;  // the dense half is full: the other will do
}

FREEHOLD_ARENA_TEMPLATE
pool::Taken FREEHOLD_ARENA::claim(unsigned c, unsigned keep, std::uint32_t who, std::uint64_t now) noexcept {
  SpanIndex i;
  {
    const sync::Guard guard(lock_);
    i = span_for(c, now);
    if (i == kNoSpan) return {};
    spans_[i].state = SpanState::kSlots;
    spans_[i].page_hints.store(0, std::memory_order_relaxed);
    holders_[i].store(pool::Holder::at_work(who).value, std::memory_order_relaxed);
    ++counters_.span_claims;
    // Release: pairs with belongs(). Under the lock, so that a purger sees either no owner or this one.
    owner_[i].store(static_cast<std::uint8_t>(c), std::memory_order_release);
  }
  return pools_[c].publish(i, keep);
}

// ---- runs -------------------------------------------------------------------------------------------------------------

FREEHOLD_ARENA_TEMPLATE
RunPlace FREEHOLD_ARENA::allocate_run(SpanIndex length, SpanIndex alignment, std::uint64_t now) noexcept {
  const auto phase = static_cast<SpanIndex>(base_ >> kSpanShift);
  if (const RunPlace place = runs_.allocate(length, alignment, phase); place.first != kNoSpan) {
    if (place.zero) grown_since_scan_ += length;
    return place;
  }
  consider_scan(0);
  const SpanIndex lead = (alignment - ((run_.frontier + phase) & (alignment - 1))) & (alignment - 1);
  if (length <= run_.end - run_.begin) {
    if (const SpanIndex first = advance_frontier(run_, lead + length); first != kNoSpan) {
      if (lead != 0) runs_.free(first, lead, false, now);
      runs_.mark_used(first + lead, length);
      return {first + lead, true};
    }
  }
  // Address space is short: make clean neighbours of everything and try once more.
  release_empties(run_, now, false);
  for (SpanIndex i = runs_.oldest_dirty(~std::uint64_t{0}); i != kNoSpan; i = runs_.oldest_dirty(~std::uint64_t{0})) {
    if (!purge_range(i, spans_[i].length)) break;
    purge_run(i, now);
  }
  return runs_.allocate(length, alignment, phase);
}

FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::free_run(SpanIndex first, std::uint64_t now) noexcept {
  runs_.free(first, spans_[first].length, true, now);
  note_due();
  // Retention is bounded: a quarter of what is in use, and 64 MiB, wait for the delay; more goes back at once.
  const std::uint64_t in_use = used_bytes() - free_dirty_bytes();
  while (runs_.dirty_spans() << kSpanShift > Config::kRetainBytes + in_use / 4) {
    const SpanIndex i = runs_.oldest_dirty(~std::uint64_t{0});
    if (i == kNoSpan || !purge_range(i, spans_[i].length)) return;
    purge_run(i, now);
  }
}

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::resize_run(SpanIndex first, SpanIndex length, std::uint64_t now, bool& zero) noexcept {
  SpanType& head = spans_[first];
  zero = false;
  if (length <= head.length) {
    const SpanIndex rest = head.length - length;
    head.length = length;
    if (rest != 0) runs_.free(first + length, rest, true, now);
    return true;
  }
  const SpanIndex more = length - head.length;
  if (runs_.extend(first, more, zero)) return true;
  if (first + head.length != run_.frontier || advance_frontier(run_, more) == kNoSpan) return false;
  head.length = length;
  zero = true;
  return true;
}

// ---- giving memory back -----------------------------------------------------------------------------------------------

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::purge_range(SpanIndex first, SpanIndex length) noexcept {
  const std::size_t bytes = std::size_t{length} << kSpanShift;
  if (!pages_->purge(reinterpret_cast<void*>(address(first)), bytes)) return false;
  ++counters_.purge_calls;
  counters_.purged_bytes += bytes;
  return true;
}

// Moves a free dirty run, whose pages are gone, to the clean ones.
FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::purge_run(SpanIndex first, std::uint64_t now) noexcept {
  const SpanIndex length = runs_.remove(first);
  runs_.free(first, length, false, now);
}

FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::purge(std::uint64_t now, bool everything) noexcept {
  for (const Half* half : {&dense_, &run_}) release_empties(*half, now, !everything);
  const std::uint64_t before = everything ? now : (now > settings_.purge_delay_ms ? now - settings_.purge_delay_ms : 0);

  for (SpanIndex i = runs_.oldest_dirty(before); i != kNoSpan; i = runs_.oldest_dirty(before)) {
    if (!purge_range(i, spans_[i].length)) break;
    purge_run(i, now);
  }
  // Dense spans: neighbours that are due go in one call.
  for (SpanIndex i = dirty_dense_ == 0 ? kNoSpan : dirty_free_.find(0); i != kNoSpan;) {
    const auto due = [&](SpanIndex s) {
      return s < dense_.frontier && spans_[s].state == SpanState::kFree && spans_[s].dirty && spans_[s].freed_at <= before;
    };
    SpanIndex end = i;
    while (due(end)) ++end;
    if (end == i) {
      i = dirty_free_.find(i + 1);
      continue;
    }
    if (!purge_range(i, end - i)) break;
    for (; i < end; ++i) {
      spans_[i].dirty = false;
      dirty_free_.retire(i, [] { return false; });
      clean_free_.set(i);
      --dirty_dense_;
      ++clean_dense_;
    }
    i = dirty_free_.find(end);
  }
  if (everything) {
    purge_partly_free(0, false);
  } else if (now >= next_idle_scan_) {
    next_idle_scan_ = now + std::max<std::uint64_t>(settings_.purge_delay_ms, 10) * 2;
    if (freed_since_scan_.load(std::memory_order_relaxed) > used_bytes() / 8) purge_partly_free(0, true);
  }
  // Relaxed: a note that comes while this runs may be lost until the next span empties.
  if (free_dirty_bytes() == 0 && empties_.find(0) == pool::SummaryTree<A>::kNone)
    something_due_.store(false, std::memory_order_relaxed);
}

// The heap has grown by a sixteenth and is about to grow more, for class `growing` (0: for a run), although much was freed
// since the last look: if other classes sit on many free slots, their free pages go back first, so that a change of sizes
// does not add the new to the old.
FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::consider_scan(unsigned growing) noexcept {
  const std::uint64_t used = used_bytes();
  if (grown_since_scan_ << kSpanShift < std::max(used / 16, Config::kScanMinBytes)) return;
  grown_since_scan_ = 0;
  if (freed_since_scan_.exchange(0, std::memory_order_relaxed) < used / 4) return;
  std::uint64_t free_bytes = 0;
  for_each_span([&](SpanIndex i, unsigned c, const SpanType&) {
    if (c != 0 && c != growing) free_bytes += pools_[c].free_slots(i) * Classes::slot_bytes(c);
  });
  if (free_bytes >= used / 8) purge_partly_free(growing, false);
}

FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::purge_partly_free(unsigned spared, bool only_idle) noexcept {
  for_each_span([&](SpanIndex i, unsigned c, const SpanType&) {
    if (c != 0 && c != spared) purge_pages_of(i, c, only_idle);
  });
}

// Returns those pages of span `i` that hold free slots only. The slots are taken while the system call runs.
FREEHOLD_ARENA_TEMPLATE
void FREEHOLD_ARENA::purge_pages_of(SpanIndex i, unsigned c, bool only_idle) noexcept {
  constexpr unsigned kPages = kSpanBytes / Config::kPageBytes;
  static_assert(kPages <= PageHints::kPages);
  Pool& pool = pools_[c];
  const pool::BlockShape shape = pool.shape();
  if (pool.free_slots(i) * 4 < shape.slots) return;
  const auto bytes = static_cast<std::uint32_t>(Classes::slot_bytes(c));
  SpanType& span = spans_[i];
  const std::uint64_t hints = span.page_hints.load(std::memory_order_relaxed);

  const auto first_slot = [&](unsigned page) { return static_cast<std::uint32_t>(page * Config::kPageBytes / bytes); };
  const auto end_slot = [&](unsigned page) {  // one past the last slot that touches the page
    return std::min(shape.slots, static_cast<std::uint32_t>(base::ceil_div((page + 1) * Config::kPageBytes, bytes)));
  };
  // Bits of word w among slots [from, end).
  const auto bits_of = [&](unsigned w, std::uint32_t from, std::uint32_t end) {
    const std::uint32_t low = std::max(from, w * 64), high = std::min(end, w * 64 + 64);
    return base::low_bits(high - w * 64) & ~base::low_bits(low - w * 64);
  };
  const auto all_free = [&](std::uint32_t from, std::uint32_t end) {
    if (from >= end) return false;
    for (unsigned w = from / 64; w <= (end - 1) / 64; ++w) {
      const std::uint64_t bits = bits_of(w, from, end);
      if ((span.words[w].load(std::memory_order_relaxed) & bits) != bits) return false;
    }
    return true;
  };

  std::uint32_t free_pages = 0;
  for (unsigned p = 0; p < kPages; ++p)
    if (all_free(first_slot(p), end_slot(p))) free_pages |= 1U << p;
  if (only_idle) {
    const auto idle = static_cast<std::uint32_t>(hints >> PageHints::kIdleShift);
    span.page_hints.store((hints & PageHints::kReturned) | std::uint64_t{free_pages} << PageHints::kIdleShift,
                          std::memory_order_relaxed);
    free_pages &= idle;
  }
  free_pages &= ~static_cast<std::uint32_t>(hints & PageHints::kReturned);  // given back already
  for (unsigned p = 0; p < kPages; ++p) {
    if ((free_pages >> p & 1) == 0) continue;
    unsigned end = p + 1;
    while (end < kPages && (free_pages >> end & 1) != 0) ++end;
    const std::uint32_t from_slot = first_slot(p), to_slot = end_slot(end - 1);
    const unsigned first_word = from_slot / 64, last_word = (to_slot - 1) / 64;
    unsigned w = first_word;
    while (w <= last_word && pool.take_exactly(pool::leaf_of(i, w), bits_of(w, from_slot, to_slot))) ++w;
    if (w > last_word &&
        pages_->purge(reinterpret_cast<void*>(address(i) + p * Config::kPageBytes), (end - p) * Config::kPageBytes)) {
      ++counters_.purge_calls;
      counters_.purged_bytes += (end - p) * Config::kPageBytes;
      const std::uint32_t mask = static_cast<std::uint32_t>(base::low_bits(end) & ~base::low_bits(p));
      span.page_hints.store(span.page_hints.load(std::memory_order_relaxed) | mask, std::memory_order_relaxed);
    }
    while (w-- > first_word) give_back(pool::leaf_of(i, w), bits_of(w, from_slot, to_slot));
    p = end;
  }
}

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::check_span_of_class(SpanIndex i) noexcept {
  const unsigned c = owner_[i].load(std::memory_order_relaxed);
  if ((c != 0) != (spans_[i].state == SpanState::kSlots)) return false;
  return c == 0 || (pools_[c].check_block(i) && (!pools_[c].looks_full(i) || empties_.test(i)));
}

FREEHOLD_ARENA_TEMPLATE
bool FREEHOLD_ARENA::check_invariants() noexcept {
  SpanIndex free_dense[2] = {0, 0};
  for (SpanIndex i = dense_.begin; i < dense_.frontier; ++i) {
    if (!check_span_of_class(i)) return false;
    if (spans_[i].state == SpanState::kSlots) continue;
    const bool dirty = spans_[i].dirty;
    if (spans_[i].state != SpanState::kFree || dirty_free_.test(i) != dirty || clean_free_.test(i) == dirty) return false;
    ++free_dense[dirty ? 1 : 0];
  }
  if (free_dense[1] != dirty_dense_ || free_dense[0] != clean_dense_) return false;
  SpanIndex i = run_.begin;  // from run to run
  while (i < run_.frontier) {
    if (!check_span_of_class(i)) return false;
    const SpanState state = spans_[i].state;
    if (state != SpanState::kSlots && state != SpanState::kRun && state != SpanState::kFreeRun) return false;
    i += length_at(i);
  }
  return i == run_.frontier && runs_.check_invariants(run_.begin, run_.frontier);
}

#undef FREEHOLD_ARENA
#undef FREEHOLD_ARENA_TEMPLATE

}  // namespace freehold::alloc
