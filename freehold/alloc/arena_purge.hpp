// SPDX-License-Identifier: MIT
// How the arena gives memory back to the system; see arena.hpp for its use and budget.hpp for the rule.
//
// In this order: wholly free spans of classes become free spans; of these, whole huge pages; small pages, the oldest first;
// then, by splitting huge pages, the rest; and wholly free pages of spans that are partly in use. A whole huge page costs
// one call and later one page fault, and is huge again; a part costs up to 512 of each. The thread that gives memory back
// first takes the spans or slots, then makes the system call, and puts them back as clean. No other thread waits for it: an
// allocation meanwhile takes other memory. A step is bounded (kStep).
#pragma once
#include <algorithm>
#include <iterator>
#include <utility>

#include "freehold/alloc/arena.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_range(std::uintptr_t at, std::size_t bytes, Effort& effort) noexcept {
  effort.spend(bytes);
  split_huge_pages(at, bytes);
  if (!pages_->purge(reinterpret_cast<void*>(at), bytes)) return false;
  counters_.purge_calls.fetch_add(1, std::memory_order_relaxed);
  counters_.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

// The system's collector of huge pages would fill a part again that was given back. Under runs the system's default stands
// until then; they lose it all at once, so that they stay one mapping.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::split_huge_pages(std::uintptr_t at, std::size_t bytes) noexcept {
  if (settings_.huge_pages != HugePages::kAuto) return;
  const auto c = static_cast<std::uint32_t>((at - base_) / kChunkBytes);
  const auto& chunk = chunks_.chunk(c);
  if (chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kRuns) {
    if (!runs_forbidden_.load(std::memory_order_relaxed)) {
      runs_forbidden_.store(true, std::memory_order_relaxed);
      forbid_huge_pages(ChunkKind::kRuns);
    }
    return;
  }
  if (chunk.huge.load(std::memory_order_relaxed) == 0) return;
  const std::size_t from = (at - base_) % kChunkBytes;
  for (std::size_t part = from / kHugeBytes; part * kHugeBytes < from + bytes; ++part)
    if (from > part * kHugeBytes || from + bytes < (part + 1) * kHugeBytes) set_huge(c, static_cast<unsigned>(part), false);
}

// ---- pages inside spans -----------------------------------------------------------------------------------------------

// Slots were handed out (`wanted`) or the span changes hands: all of its pages count as resident.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::drop_hints(SpanIndex i, bool wanted) noexcept {
  const std::uint64_t old = spans_[i].page_hints.exchange(0, std::memory_order_relaxed);  // relaxed: hints
  const auto bytes =
      static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(old & PageHints::kReturned)) * Config::kPageBytes);
  if (bytes == 0) return;
  budget_.pages_returned(-bytes);
  // The clock of the last tick is good enough here.
  const std::uint64_t now = next_tick_.load(std::memory_order_relaxed);
  if (wanted && BudgetType::is_soon(static_cast<std::uint32_t>(swept_at_.load(std::memory_order_relaxed)), now))
    budget_.regret(bytes, now);
}

// One bit for each page of span `i` on which all slots look free.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint32_t Arena<A, Config, Pages>::free_pages_of(SpanIndex i, SizeClass c) noexcept {
  const auto shape = pools_[c].shape();
  const std::size_t bytes = Classes::slot_bytes(c);
  std::uint32_t pages = 0;
  for (unsigned p = 0; p < kPagesPerSpan; ++p) {
    const auto [from, end] = slots_on_pages<Config>(shape.slots, bytes, p, p + 1);
    bool free = from < end;
    for (unsigned w = from / 64; free && w <= (end - 1) / 64; ++w) {
      const std::uint64_t bits = pool::bits_of_word(w, from, end);
      free = (words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed) & bits) == bits;
    }
    if (free) pages |= 1U << p;
  }
  return pages;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
pool::Taken Arena<A, Config, Pages>::take_lowest(SpanIndex i, SizeClass c, std::size_t from, std::size_t end,
                                                 unsigned most) noexcept {
  Pool& pool = pools_[c];
  const auto shape = pool.shape();
  const std::size_t bytes = Classes::slot_bytes(c);
  const auto first_on = [&](std::size_t page) {
    return std::min(shape.slots, static_cast<std::uint32_t>(base::ceil_div(page * Config::kPageBytes, bytes)));
  };
  if (spans_[i].summaries[table_of(c)].load(std::memory_order_relaxed) == 0) return {};  // relaxed: a hint
  const std::uint32_t first = first_on(from), last = first_on(end);
  for (unsigned w = first / 64; w * 64 < last; ++w) {
    std::uint64_t bits =
        words_of(c)[pool::word_index(i, w)].load(std::memory_order_relaxed) & pool::bits_of_word(w, first, last);
    if (bits == 0) continue;
    const std::uint32_t slot = w * 64 + base::lowest_bit(bits);
    bits &= pool::bits_of_word(w, slot, first_on(slot * bytes / Config::kPageBytes + 1));
    while (static_cast<unsigned>(std::popcount(bits)) > most) bits &= bits - 1;
    const pool::WordIndex index = pool::word_index(i, w);
    if (!pool.take_exactly(index, bits)) continue;
    if (class_of_span(i) != c) {
      put_back(index, bits);
      return {};
    }
    // We hold slots, so the span's class does not change any more. The pages are wanted for less memory in all: no regret.
    if (spans_[i].page_hints.load(std::memory_order_relaxed) != 0) drop_hints(i, false);
    return {index, bits};
  }
  return {};
}

// Returns the pages [page, end) of span `i`, all of whose slots are taken while the system call runs. Nothing happens if one
// is not free, or the span has changed its class, which cannot be once we hold slots. False: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_pages(SpanIndex i, SizeClass c, unsigned page, unsigned end, Effort& effort) noexcept {
  Pool& pool = pools_[c];
  const std::size_t bytes = Classes::slot_bytes(c);
  const auto [from, to] = slots_on_pages<Config>(pool.shape().slots, bytes, page, end);
  const unsigned first_word = from / 64, last_word = (to - 1) / 64;
  unsigned w = first_word;
  while (w <= last_word && pool.take_exactly(pool::word_index(i, w), pool::bits_of_word(w, from, to))) ++w;
  const bool ours = w > last_word && class_of_span(i) == c;
  const bool done = ours && purge_range(address(i) + page * Config::kPageBytes, (end - page) * Config::kPageBytes, effort);
  if (done) {
    const std::uint64_t mask = base::low_bits(end) & ~base::low_bits(page);
    const std::uint64_t fresh = mask & ~spans_[i].page_hints.fetch_or(mask, std::memory_order_relaxed);
    budget_.pages_returned(static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(fresh)) * Config::kPageBytes));
  }
  while (w-- > first_word) put_back(pool::word_index(i, w), pool::bits_of_word(w, from, to));
  return done || !ours;
}

// False: the system refuses; the span stays in the set of drained.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_pages_of(SpanIndex i, SizeClass c, std::uint64_t now, Effort& effort) noexcept {
  const auto returned =
      static_cast<std::uint32_t>(spans_[i].page_hints.load(std::memory_order_relaxed) & PageHints::kReturned);
  const std::uint32_t pages = free_pages_of(i, c) & ~returned;
  for (unsigned p = 0; p < kPagesPerSpan; ++p) {
    if ((pages >> p & 1) == 0) continue;
    const unsigned end = p + static_cast<unsigned>(std::countr_one(pages >> p));
    if (!purge_pages(i, c, p, end, effort)) {
      drained_.set(i);
      return false;
    }
    swept_at_.store(now, std::memory_order_relaxed);
    p = end;
  }
  return true;
}

// ---- one thing at a time ----------------------------------------------------------------------------------------------

// Bits of the free spans that hold pages and may go back: of the first part of a huge page's size that is free as a whole,
// of small pages, of any.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint64_t Arena<A, Config, Pages>::dirty_spans(std::uint32_t c, Part kind) noexcept {
  const std::uint64_t dirty = chunks_.free_and_dirty(c);
  if (dirty == 0 || kind == Part::kAny) return dirty;
  const auto& chunk = chunks_.chunk(c);
  const std::uint64_t free = chunk.free.load(std::memory_order_relaxed);
  std::uint64_t small = dirty;
  const unsigned huge = chunk.huge.load(std::memory_order_relaxed);
  const bool may_be_huge =
      settings_.huge_pages != HugePages::kOff && chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kSlots;
  for (unsigned part = 0; part < kHugeParts; ++part) {
    const std::uint64_t all = base::low_bits(kHugeSpans) << part * kHugeSpans;
    const bool is_huge = (huge >> part & 1) != 0;
    if (kind == Part::kWhole && (is_huge || may_be_huge) && (free & all) == all && (dirty & all) != 0)
      return is_huge ? all : dirty & all;
    if (is_huge) small &= ~all;
  }
  return kind == Part::kSmallPages ? small : 0;
}

// Of a few chunks behind the cursor that hold such pages, the one where spans became free least lately; kNoChunk: none does.
template <sync::Atomics A, class Config, os::PageSource Pages>
std::uint32_t Arena<A, Config, Pages>::oldest_dirty_chunk(Part part) noexcept {
  constexpr unsigned kGood = 4, kLooks = 64;
  std::uint32_t oldest = Chunks::kNoChunk, oldest_at = 0;
  for (const std::uint32_t from : {purge_cursor_, std::uint32_t{0}}) {
    std::uint32_t c = chunks_.find_dirty(from);
    for (unsigned good = 0, looks = 0; c != Chunks::kNoChunk && good < kGood && looks < kLooks;
         ++looks, c = chunks_.find_dirty(c + 1)) {
      if (dirty_spans(c, part) == 0) continue;
      const std::uint32_t at = chunks_.chunk(c).freed_at.load(std::memory_order_relaxed);
      if (good++ != 0 && static_cast<std::int32_t>(at - oldest_at) >= 0) continue;
      oldest = c;
      oldest_at = at;
    }
    if (oldest != Chunks::kNoChunk) {
      purge_cursor_ = oldest;
      return oldest;
    }
    if (c != Chunks::kNoChunk && from != 0) {  // many that hold nothing of the kind: on from here next time
      purge_cursor_ = c;
      return oldest;
    }
    purge_cursor_ = c == Chunks::kNoChunk ? 0 : c;
  }
  return oldest;
}

// Returns the pages of a few neighbouring free spans. False: the system refuses.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_chunk(std::uint32_t chunk, Part part, std::uint64_t now, Effort& effort) noexcept {
  const std::uint64_t among = dirty_spans(chunk, part);
  TakenSpans t;
  unsigned n = kHugeSpans;
  if (among == 0) return true;
  if (part == Part::kWhole && std::popcount(among) == kHugeSpans) {
    t = chunks_.take_exactly(chunk * kChunkSpans + base::lowest_bit(among), n);
  } else {
    t.first = chunks_.take_dirty(chunk, kMostStepSpans, n, among);
    t.dirty = n;
  }
  if (t.first == kNoSpan) return true;
  const auto time = static_cast<std::uint32_t>(now);
  if (!purge_range(address(t.first), std::size_t{n} << kSpanShift, effort)) {
    chunks_.chunk(chunk).freed_at.store(time, std::memory_order_relaxed);
    chunks_.give_untouched(t, n);
    return false;
  }
  chunks_.give_clean(t.first, n, time);
  (void)budget_.spans_changed(shards_[shard_number()].budget, -static_cast<std::int64_t>(t.dirty * kSpanBytes), 0);
  note_records_of(chunk, now);
  return true;
}

// The records of a chunk that became wholly free and clean may go back; those of the last few chunks wait, since memory that
// rises and falls would take their pages again at once, each by two faults.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::note_records_of(std::uint32_t chunk, std::uint64_t now) noexcept {
  const auto& c = chunks_.chunk(chunk);
  if (!c.has_records.load(std::memory_order_relaxed) || c.free.load(std::memory_order_relaxed) != Chunks::kAll ||
      c.dirty.load(std::memory_order_relaxed) != 0 ||
      std::ranges::find(waiting_records_, chunk + 1) != std::end(waiting_records_))
    return;
  std::uint32_t& place = waiting_records_[next_waiting_++ % kWaitingRecords];
  if (const std::uint32_t former = std::exchange(place, chunk + 1); former != 0) purge_records_of(former - 1, now);
}

// Those whose chunk went back at least `age` milliseconds ago. Returns whether some are left.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_waiting_records(std::uint64_t now, std::uint64_t age) noexcept {
  bool left = false;
  for (std::uint32_t& place : waiting_records_) {
    if (place == 0) continue;
    const std::uint32_t since =
        static_cast<std::uint32_t>(now) - chunks_.chunk(place - 1).purged_at.load(std::memory_order_relaxed);
    // Signed: `purged_at` is made odd, and may be later.
    if (static_cast<std::int64_t>(static_cast<std::int32_t>(since)) + 1 < static_cast<std::int64_t>(age)) {
      left = true;
      continue;
    }
    purge_records_of(std::exchange(place, 0) - 1, now);
  }
  return left;
}

// The records of the spans of a chunk that is wholly free and clean are zero but for stale hints, and zero is what they may
// read as. We hold all of its spans meanwhile.
template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::purge_records_of(std::uint32_t chunk, std::uint64_t now) noexcept {
  auto& c = chunks_.chunk(chunk);
  if (!c.has_records.load(std::memory_order_relaxed)) return;
  if (c.free.load(std::memory_order_relaxed) != Chunks::kAll || c.dirty.load(std::memory_order_relaxed) != 0) return;
  const SpanIndex first = chunk * kChunkSpans;
  if (chunks_.take_exactly(first, kChunkSpans).first == kNoSpan) return;
  const auto purge = [&](const void* begin, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const std::uintptr_t from = base::align_up(at, Config::kPageBytes),
                         end = base::align_down(at + bytes, Config::kPageBytes);
    if (end > from) (void)pages_->purge(reinterpret_cast<void*>(from), end - from);
  };
  purge(spans_ + first, kChunkSpans * sizeof(SpanType));
  for (const Storage& of : storages_)
    purge(&of.words[pool::word_index(first, 0)], kChunkSpans * of.words.words_per_span * sizeof(Word));
  c.has_records.store(false, std::memory_order_relaxed);
  chunks_.give(first, kChunkSpans, false, static_cast<std::uint32_t>(now));
}

// `split`: huge pages, too. False: nothing is left that can go back.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_something(std::uint64_t now, Effort& effort, bool split) noexcept {
  constexpr std::size_t kLookBytes = 32 * 1024;  // what a look costs, beside giving pages back
  if (const SpanIndex i = reclaim_empty_span(0); i != kNoSpan) {
    effort.bytes -= std::min(effort.bytes, kLookBytes);
    effort.reclaimed += kSpanBytes;
    give_spans(i, 1, now);
    return true;
  }
  for (const Part part : {Part::kWhole, Part::kSmallPages, Part::kAny}) {
    if (part == Part::kAny && !split) return false;
    const std::uint32_t c = oldest_dirty_chunk(part);
    if (c != Chunks::kNoChunk && purge_chunk(c, part, now, effort)) return true;
  }
  SpanIndex i = drained_.find(drained_cursor_);
  if (i == Tree::kNone) i = drained_.find(0);
  drained_cursor_ = i == Tree::kNone ? 0 : i + 1;
  if (i == Tree::kNone) return false;
  retire_drained(i);
  effort.bytes -= std::min(effort.bytes, kLookBytes);
  const SizeClass c = class_after_leaving(i);
  return !c.is_slot() || purge_pages_of(i, c, now, effort);
}

// ---- when -------------------------------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::relieve(std::uint64_t now, std::size_t freed) noexcept {
  if (!purge_lock_.try_lock()) return false;
  // Twice as much as was freed, so that memory that others could not give back meanwhile goes, too.
  Effort effort{std::max(kStep.calls, static_cast<unsigned>(freed >> kSpanShift)), std::max(kStep.bytes, 2 * freed)};
  const std::uint64_t before = counters_.purged_bytes.load(std::memory_order_relaxed);
  bool more = true, split = true;
  for (std::int64_t excess; more && effort.left() && (excess = budget_.excess()) > 0;) {
    // Where the purger thread is the last resort, it splits huge pages after the delay, and frees do not.
    split = excess > patience() && !budget_.is_purged_in_time();
    more = purge_something(now, effort, split);
  }
  // A step that hardly finds a free page is not worth its time at every report: free slots lie scattered, for now.
  const std::uint64_t purged = counters_.purged_bytes.load(std::memory_order_relaxed) - before;
  if (split && (!more || (!effort.left() && purged + effort.reclaimed < kStep.bytes / 256))) budget_.nothing_left();
  purge_lock_.unlock();
  return purged != 0;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::trim_step(std::uint64_t now, std::size_t& bytes) noexcept {
  const sync::Guard guard(purge_lock_);
  const std::uint64_t before = counters_.purged_bytes.load(std::memory_order_relaxed);
  bool more = true;
  for (Effort effort = kStep; more && effort.left();) more = purge_something(now, effort);
  if (!more) {
    budget_.nothing_left();
    (void)purge_waiting_records(now, 0);
  }
  bytes += counters_.purged_bytes.load(std::memory_order_relaxed) - before;
  return more;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::admit(std::uint64_t bytes, std::uint64_t now) noexcept {
  const auto fits = [&] {
    const std::uint64_t most = limit();
    if (most == 0) return true;
    for (Shard& shard : shards_) budget_.settle(shard.budget);
    const std::int64_t held = budget_.footprint();
    return bytes <= most && (held <= 0 || static_cast<std::uint64_t>(held) <= most - bytes);
  };
  if (fits()) return true;
  (void)trim(now);
  if (fits()) return true;
  limit_was_met_.store(true, std::memory_order_relaxed);
  return false;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
void Arena<A, Config, Pages>::tick_locked(std::uint64_t now) noexcept {
  next_tick_.store(now + std::max<std::uint64_t>(settings_.purge_delay_ms / 4, 10), std::memory_order_relaxed);
  if (purge_idle_locked(now) == Due::kNow) next_tick_.store(now, std::memory_order_relaxed);  // go on at the next slow call
  if (drained_.find(0) != Tree::kNone) note_due();  // while the program runs: they may become much
}

template <sync::Atomics A, class Config, os::PageSource Pages>
Due Arena<A, Config, Pages>::purge_idle(std::uint64_t now) noexcept {
  if (!purge_lock_.try_lock()) return Due::kLater;
  const Due due = purge_idle_locked(now);
  purge_lock_.unlock();
  return due;
}

template <sync::Atomics A, class Config, os::PageSource Pages>
Due Arena<A, Config, Pages>::purge_idle_locked(std::uint64_t now) noexcept {
  budget_.forget(now);
  // Cleared first, seq_cst: a note that comes while we look stays (store buffering with note_due()).
  something_due_.store(false, std::memory_order_seq_cst);
  Effort effort = kStep;
  bool more = purge_due(now, effort);
  more = purge_waiting_records(now, settings_.purge_delay_ms) || more;
  more = look_at_empties(now, effort) || more;
  more = (look_at_drained(now, effort) && is_much_scattered()) || more;
  if (more) note_due();
  return !effort.left() ? Due::kNow : more ? Due::kLater : Due::kNothing;
}

// Free spans whose chunk saw no free for the delay. Returns whether some are left.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::purge_due(std::uint64_t now, Effort& effort) noexcept {
  std::uint32_t c = chunks_.find_dirty(0);
  for (; c != Chunks::kNoChunk; c = chunks_.find_dirty(c + 1)) {
    const std::uint32_t at = chunks_.chunk(c).freed_at.load(std::memory_order_relaxed);
    // Signed: spans may have become free after `now` was read.
    if (static_cast<std::int32_t>(static_cast<std::uint32_t>(now) - at) <
        static_cast<std::int32_t>(settings_.purge_delay_ms))
      continue;
    for (const Part part : {Part::kWhole, Part::kAny})
      for (unsigned i = 0; i < kChunkSpans && effort.left() && dirty_spans(c, part) != 0; ++i)
        if (!purge_chunk(c, part, now, effort)) return true;
    if (!effort.left()) return true;
  }
  return chunks_.find_dirty(0) != Chunks::kNoChunk;
}

// Wholly free spans of which no slot was handed out between two looks: a thread that empties and fills its spans again and
// again keeps them, and its cache keeps their lines. Returns whether some are left.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::look_at_empties(std::uint64_t now, Effort& effort) noexcept {
  constexpr unsigned kLooks = 4096;
  constexpr std::size_t kReclaimBytes = 32 * 1024;  // what taking a span back costs, beside giving pages back
  SpanIndex i = empties_.find(empties_cursor_);
  if (i == Tree::kNone) i = empties_.find(0);
  for (unsigned looks = 0; i != Tree::kNone && looks < kLooks && effort.left(); ++looks, i = empties_.find(i + 1)) {
    const SizeClass c = class_of_span(i);
    if (c.is_slot() &&
        (spans_[i].page_hints.fetch_or(PageHints::kLooked, std::memory_order_relaxed) & PageHints::kLooked) == 0)
      continue;
    effort.bytes -= std::min(effort.bytes, kReclaimBytes);
    if (leave_empties(i)) give_spans(i, 1, now, false);
  }
  empties_cursor_ = i == Tree::kNone ? 0 : i;
  if (i != Tree::kNone) effort.calls = 0;  // the rest is for the next slow call
  return empties_.find(0) != Tree::kNone;
}

// Whether partly used spans may have enough free pages for a search to be worth while.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::is_much_scattered() noexcept {
  return budget_.scattered() >= Config::kKeepBytes / 2 + budget_.in_use() / Config::kKeepShare;
}

// The same for wholly free pages of spans that are partly in use, if there is much to be had.
template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::look_at_drained(std::uint64_t now, Effort& effort) noexcept {
  constexpr unsigned kLooks = 512;
  bool refused = false;
  if (!is_much_scattered()) return false;
  if (now < next_drained_look_) return true;
  SpanIndex i = drained_.find(drained_cursor_);
  for (unsigned looks = 0; i != Tree::kNone && looks < kLooks && effort.left(); ++looks, i = drained_.find(i + 1)) {
    const SizeClass c = class_of_span(i);
    if (c.is_slot() &&
        (spans_[i].page_hints.fetch_or(PageHints::kDrained, std::memory_order_relaxed) & PageHints::kDrained) == 0)
      continue;
    retire_drained(i);
    const SizeClass left = class_after_leaving(i);
    if (left.is_slot() && !purge_pages_of(i, left, now, effort)) {
      refused = true;  // as under mlockall(): others would be, too
      break;
    }
  }
  drained_cursor_ = i == Tree::kNone ? 0 : i + (refused ? 1 : 0);
  if (i != Tree::kNone && !refused) {
    effort.calls = 0;
    return true;
  }
  next_drained_look_ = now + settings_.purge_delay_ms / 2;  // a whole round was made, or is of no use
  return drained_.find(0) != Tree::kNone;
}

}  // namespace freehold::alloc
