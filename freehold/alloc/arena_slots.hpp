// SPDX-License-Identifier: MIT
// Slots and the spans of size classes: how slots leave and enter the word pools, and how spans change classes; see
// arena.hpp.
//
// A class gets a span by claim(). A span whose slots are all free is noted in empties_, by the thread that gives the last
// one back, and reclaim_span() takes it from its class: all of its slots at once, or none. A search of the former class may
// still have the span in mind, so take_slots() asks for the class after it took slots, while it cannot change.
#pragma once
#include <bit>
#include <span>

#include "freehold/alloc/arena.hpp"
#include "freehold/base/config.hpp"

namespace freehold::alloc {

// ---- slots ----------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
inline pool::Taken Arena<A, Config, Pages>::take_slots(SizeClass c, pool::Cursor& cursor, unsigned want,
                                                       std::uint32_t thread_id, unsigned max_foreign_spans) noexcept {
  for (;;) {
    const pool::Taken taken = pools_[c].find(cursor, want, thread_id, max_foreign_spans);
    if (taken.bits == 0) return taken;
    // We hold slots, so the span's class does not change any more.
    if (class_of_span(pool::span_of(taken.word)) == c) [[likely]] {
      pools_[c].settle(cursor, taken.word, thread_id);
      note_taken(pool::span_of(taken.word));
      return taken;
    }
    put_back(taken.word, taken.bits);
  }
}

template <sync::Atomics A, class Config, os::PageSource Pages>
[[gnu::always_inline]] inline pool::Taken Arena<A, Config, Pages>::take_slots_at_home(SizeClass c, pool::Cursor& cursor,
                                                                                      unsigned want,
                                                                                      std::uint32_t thread_id) noexcept {
  const pool::Taken taken = pools_[c].find_at_home(cursor, want, thread_id);
  if (taken.bits == 0) return taken;
  const SpanIndex span = pool::span_of(taken.word);
  if (class_of_span(span) != c) [[unlikely]] {  // as in take_slots()
    put_back(taken.word, taken.bits);
    return {};
  }
  pools_[c].settle(cursor, taken.word, thread_id);
  // A word that was taken whole is empty: the next search begins behind it.
  if (want >= 64) cursor.word = pool::word_index(span, (pool::word_in_span(taken.word) + 1) & 63);
  note_taken(span);
  return taken;
}

// Puts slots back that were taken for a moment: from a span of an unexpected class, or to purge their pages. Concurrent
// frees saw these slots as taken and did not report the span as empty, so we must.
template <sync::Atomics A, class Config, os::PageSource Pages>
inline void Arena<A, Config, Pages>::put_back(pool::WordIndex index, std::uint64_t bits) noexcept {
  const SizeClass c = class_of_span(pool::span_of(index));
  const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(index));
  (void)give_word(c, index, bits, full, words_of(c)[index]);
}

template <sync::Atomics A, class Config, os::PageSource Pages>
inline std::uint64_t Arena<A, Config, Pages>::give_slots(SizeClass c, const pool::Taken& slots) noexcept {
  const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(slots.word));
  const std::uint64_t twice = give_word(c, slots.word, slots.bits, full, words_of(c)[slots.word]);
  const SpanIndex span = pool::span_of(slots.word);
  if (twice == 0 && !is_noted_as_drained(span_hints_[span])) add_drained(span);
  return twice;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint32_t Arena<A, Config, Pages>::give_slots(SizeClass c, void* const* slots, std::size_t n, pool::WordIndex& last,
                                                  std::uint32_t thread_id) noexcept {
  pool::SlotGroups groups;
  pool::group_slots(geometry_[c], slots, n, groups);
  if (groups.misplaced != 0) [[unlikely]]
    base::fatal(base::HeapError::kInteriorPointer, reinterpret_cast<void*>(groups.misplaced));
  if (groups.repeated != 0) [[unlikely]]
    base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(groups.repeated));
  const std::size_t count = groups.count;
  if (count == 0) return 0;
  // What the loops need, in registers: the locked instructions would have it read again.
  const WordTable words = words_of(c);
  const SpanHints<A>* const hints = span_hints_;
  const std::span<const pool::SlotGroup> all(groups.groups, count);
  // The lines are fetched for writing all at once: the locked instructions below would wait for each in turn.
  for (const auto& [index, bits] : all) base::prefetch_for_write(&words[index]);
  Pool& pool = pools_[c];
  const std::uint64_t last_full = pool.shape().full(pool.shape().words() - 1);
  const auto mine = pool::LastUser::active(thread_id);
  std::size_t remote_groups = 0;
  for (const auto [index, bits] : all) {
    const std::uint64_t old = pool.put(index, bits, words[index]);
    if ((old & bits) != 0) [[unlikely]] {
      report_twice(c, index, bits, old & bits);
      continue;
    }
    // The last word of a span may have fewer slots, which are the lowest bits of any.
    if (const std::uint64_t now = old | bits; (now & last_full) == last_full) [[unlikely]]
      if (now == pool.shape().full(pool::word_in_span(index))) note_full(c, index);
    const SpanIndex span = pool::span_of(index);
    if (!is_noted_as_drained(hints[span])) [[unlikely]]
      add_drained(span);
    remote_groups += is_used_by_others(hints[span], mine) ? 1 : 0;
  }
  last = groups.groups[count - 1].word;
  if (remote_groups == 0 || remote_groups == count) [[likely]]
    return remote_groups == 0 ? 0 : static_cast<std::uint32_t>(n);
  // Bits are counted only where it must be: without an instruction for it that takes longer than all of the above.
  std::uint32_t remote = 0;
  for (const auto& [index, bits] : all)
    if (is_used_by_others(hints[pool::span_of(index)], mine)) remote += static_cast<std::uint32_t>(std::popcount(bits));
  return remote;
}

// Slots `twice` of a group were free already; a test's handler may return, and the others are innocent.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::report_twice(SizeClass c, pool::WordIndex index, std::uint64_t bits,
                                           std::uint64_t twice) noexcept {
  base::fatal(base::HeapError::kDoubleFree, reinterpret_cast<void*>(geometry_[c].address(index, base::lowest_bit(twice))));
  const std::uint64_t full = pools_[c].shape().full(pool::word_in_span(index));
  (void)give_word(c, index, bits & ~twice, full, words_of(c)[index]);
}

// Returns the bits that were set already; then nothing was changed.
template <sync::Atomics A, class Config, os::PageSource Pages>
inline std::uint64_t Arena<A, Config, Pages>::give_word(SizeClass c, pool::WordIndex index, std::uint64_t bits,
                                                        std::uint64_t full, Word& word) noexcept {
  const std::uint64_t old = pools_[c].put(index, bits, word);
  if ((old & bits) != 0) [[unlikely]]
    return old & bits;
  if ((old | bits) == full) note_full(c, index);
  return 0;
}

// A word became full: its span may be wholly free. One bit set, once per span that empties.
template <sync::Atomics A, class Config, os::PageSource Pages>
inline void Arena<A, Config, Pages>::note_full(SizeClass c, pool::WordIndex index) noexcept {
  const SpanIndex span = pool::span_of(index);
  if (!empties_.test(span) && pools_[c].looks_full(span, pool::word_in_span(index))) {
    empties_.set(span);
    budget_.not_stuck(kSpanBytes);
    note_due();
  }
}

// Slots of a span were given back: its pages are worth a look. The word is set after the set's bit, and again if a look
// took that away before.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::add_drained(SpanIndex i) noexcept {
  do {
    drained_.set(i);
    span_hints_[i].is_drained.store(1, std::memory_order_seq_cst);
  } while (!drained_.test(i));
  note_due();
}

// Before a look at the span's pages. A free that finds the word set relies on this look or a later one, so the word is
// cleared after the bit and before the look.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::retire_drained(SpanIndex i) noexcept {
  drained_.retire(i, [] { return false; });
  span_hints_[i].is_drained.store(0, std::memory_order_seq_cst);
}

// ---- spans of classes -----------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
pool::Taken Arena<A, Config, Pages>::claim(SizeClass c, unsigned keep, std::uint32_t thread_id, std::uint64_t now) noexcept {
  const SpanIndex i = span_for(c, now);
  if (i == kNoSpan) return {};
  span_hints_[i].last_user.store(pool::LastUser::active(thread_id).value, std::memory_order_relaxed);
  auto& chunk = chunks_.chunk(i / kChunkSpans);
  if (!chunk.has_records.load(std::memory_order_relaxed)) chunk.has_records.store(true, std::memory_order_relaxed);
  counters_.span_claims.fetch_add(1, std::memory_order_relaxed);
  budget_.class_spans(kSpanBytes);
  span_class_[i].store(static_cast<std::uint8_t>(c.index()), Config::SpanOrders::kSetClass);
  return pools_[c].publish(i, keep);
}

// A span that is the caller's: free and warm, or of another class that has become wholly free, or clean.
template <sync::Atomics A, class Config, os::PageSource Pages>
SpanIndex Arena<A, Config, Pages>::span_for(SizeClass c, std::uint64_t now) noexcept {
  const TakenSpans t = take_spans(chunk_kind_of(c), 1, 1, true, now);
  if (t.first != kNoSpan && t.dirty == 0) ask_for_huge_page(t);
  return t.first;
}

// Takes one wholly free span at or after `from` back from its class; the span is the caller's.
template <sync::Atomics A, class Config, os::PageSource Pages>
SpanIndex Arena<A, Config, Pages>::reclaim_empty_span(SpanIndex from) noexcept {
  for (SpanIndex i = empties_.find(from); i != Tree::kNone; i = empties_.find(i + 1))
    if (leave_empties(i)) return i;
  return kNoSpan;
}

// Takes a span out of the set. Returns whether it is the caller's now, of no class.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::leave_empties(SpanIndex i) noexcept {
  empties_.retire(i, [] { return false; });
  const SizeClass c = class_after_leaving(i);
  return c.is_slot() && reclaim_span(i, c);
}

// Takes every slot of span `i` of class `c`; the span is the caller's then, of no class. The class is asked again while we
// hold slots: until then the span may have changed hands.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::reclaim_span(SpanIndex i, SizeClass c) noexcept {
  Pool& pool = pools_[c];
  if (!pool.take_all(i)) {
    // A missing word may have come back while we held others; the thread that brought it did not see a free span. And the
    // span may be another class's by now.
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

}  // namespace freehold::alloc
