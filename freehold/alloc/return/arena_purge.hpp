// SPDX-License-Identifier: MIT
// How the arena gives memory back to the system; budget.hpp has the rule. The limit of memory is here, too, since free
// memory goes back before it is met.
//
// In this order: wholly free spans of classes become free spans; of these, whole huge pages; small pages, the oldest first;
// then, by splitting huge pages, the rest; and wholly free pages of spans that are partly in use. A whole huge page costs
// one call and later one page fault, and is huge again; a part costs up to 512 of each. The thread that gives memory back
// first takes the spans or slots, then makes the system call, and puts them back as clean. No other thread waits for it: an
// allocation takes other memory. A step is bounded (kStep).
//
//   Invariant: between steps the purger holds no span and no slot.
//
// lock_ lets one thread at a time give memory back; others pass by, but trim_step() and admit() wait for it.
#pragma once
#include <algorithm>
#include <iterator>
#include <utility>

#include "freehold/alloc/return/arena_huge.hpp"
#include "freehold/alloc/spans/class_spans.hpp"
#include "freehold/alloc/spans/free_spans.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class ArenaPurge {
 public:
  using Units = ArenaUnits<Config>;
  using Classes = typename Config::Classes;
  using Slots = ArenaSlots<A, Config>;
  using Spans = FreeSpans<A, Config>;
  using Chunks = typename Spans::Chunks;
  using Huge = HugeParts<A, Config, Pages>;

  constexpr ArenaPurge(const SpanRange<A, Config>& range, Slots& slots, Spans& spans, Huge& huge, Budget<A, Config>& budget,
                       DueNote<A>& due, ArenaCounters<A>& counters) noexcept
      : range_(range),
        slots_(slots),
        spans_(spans),
        chunks_(spans.chunks()),
        huge_(huge),
        budget_(budget),
        due_(due),
        counters_(counters) {}

  // Not thread-safe.
  void init(Pages& pages, const ArenaSettings& settings) noexcept {
    pages_ = &pages;
    delay_ms_ = std::min(settings.purge_delay_ms, kMostDelayMs);
    (void)set_limit(settings.limit_bytes);
  }
  [[nodiscard]] std::uint64_t delay_ms() const noexcept { return delay_ms_; }

  // --- when ----------------------------------------------------------------------------------------------------------

  // True if the budget is exceeded by so much that relieve() should be called.
  [[nodiscard]] bool is_worth_a_step() noexcept { return budget_.excess() > kSlackBytes + huge_.patience(); }
  // Gives back memory beyond the budget, in a step that is bounded by a constant and by what was freed just now. Returns
  // whether anything went back.
  [[gnu::noinline]] bool relieve(std::uint64_t now, std::size_t freed = 0) noexcept {
    if (!lock_.try_lock()) return false;
    // Twice as much as was freed, so that memory that others could not give back goes, too.
    Effort effort{std::max(kStep.calls, static_cast<unsigned>(freed >> Units::kSpanShift)),
                  std::max(kStep.bytes, 2 * freed)};
    const std::uint64_t before = counters_.purged_bytes.load(std::memory_order_relaxed);
    bool more = true, split = true;
    for (std::int64_t excess; more && effort.left() && (excess = budget_.excess()) > 0;) {
      // If the purger thread is the last resort, it splits huge pages after the delay, and frees do not.
      split = excess > huge_.patience() && !budget_.is_purged_in_time();
      more = purge_something(now, effort, split);
    }
    // A step that hardly finds a free page is not worth its time at every report: free slots lie scattered, for now.
    const std::uint64_t purged = counters_.purged_bytes.load(std::memory_order_relaxed) - before;
    if (split && (!more || (!effort.left() && purged + effort.reclaimed < kStep.bytes / 256))) budget_.nothing_left();
    lock_.unlock();
    return purged != 0;
  }
  // Gives everything back that is wholly free, at page granularity, at once. Returns bytes. Frees do not wait.
  std::size_t trim(std::uint64_t now) noexcept {
    std::size_t bytes = 0;
    while (trim_step(now, bytes)) continue;
    return bytes;
  }
  // A bounded part of that; adds to `bytes`. Returns whether there is more.
  [[nodiscard]] bool trim_step(std::uint64_t now, std::size_t& bytes) noexcept {
    const sync::Guard guard(lock_);
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
  // Gives back memory that has been free for the delay, in a bounded step. Call now and then from slow paths; `now` in
  // milliseconds. Returns whether it looked, and so may have cleared the note of due memory.
  bool tick(std::uint64_t now) noexcept {
    if (!is_tick_due(now) || !lock_.try_lock()) return false;
    tick_locked(now);
    lock_.unlock();
    return true;
  }
  [[nodiscard]] bool is_tick_due(std::uint64_t now) const noexcept { return now >= due_.next_tick(); }
  // The same step at any time, for a thread that has nothing else to do. Waits for no lock.
  [[nodiscard]] Due purge_idle(std::uint64_t now) noexcept {
    if (!lock_.try_lock()) return Due::kLater;
    const Due due = purge_idle_locked(now);
    lock_.unlock();
    return due;
  }

  // --- the limit -----------------------------------------------------------------------------------------------------

  // True if `bytes` more may be in use under the limit, if need be after everything free has gone back.
  [[nodiscard]] bool admit(std::uint64_t bytes, std::uint64_t now) noexcept {
    const auto fits = [&] {
      const std::uint64_t most = limit();
      if (most == 0) return true;
      spans_.settle();
      const std::int64_t held = budget_.footprint();
      return bytes <= most && (held <= 0 || static_cast<std::uint64_t>(held) <= most - bytes);
    };
    if (fits()) return true;
    (void)trim(now);
    if (fits()) return true;
    limit_was_met_.store(true, std::memory_order_relaxed);
    return false;
  }
  // Returns the former limit.
  std::uint64_t set_limit(std::uint64_t bytes) noexcept {
    const std::uint64_t former = limit();
    limit_.store(bytes, std::memory_order_relaxed);
    return former;
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }  // 0: none
  [[nodiscard]] bool limit_was_met() const noexcept { return limit_was_met_.load(std::memory_order_relaxed); }

  [[nodiscard]] auto& lock() noexcept { return lock_; }
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kLimitBytes, limit_);
    f(LiveFigure::kLockWaits, lock_.waits().counter());
  }

 private:
  static constexpr std::uint64_t kMostDelayMs = std::uint64_t{1} << 30;  // twelve days: times wrap at 32 bits
  static constexpr std::int64_t kSlackBytes = 256 * 1024;                // over the budget before a step is worth while
  static constexpr unsigned kMostStepSpans = std::min(16U, Units::kChunkSpans);  // returned by one system call
  static constexpr Effort kStep{128, std::size_t{16} << 20};                     // half a millisecond: 100 ns a page
  static constexpr unsigned kWaitingRecords = 32;                                // 1.1 MiB
  // Says which part of a chunk's free spans may go back.
  enum class Part : std::uint8_t { kWhole, kSmallPages, kAny };

  [[nodiscard]] static bool is_past(const auto& at, std::uint64_t now, std::uint64_t age) noexcept {
    return Chunks::is_past(at.load(std::memory_order_relaxed), static_cast<std::uint32_t>(now),
                           static_cast<std::uint32_t>(age));
  }
  void tick_locked(std::uint64_t now) noexcept {
    due_.set_next_tick(now + std::max<std::uint64_t>(delay_ms_ / 4, 10));
    if (purge_idle_locked(now) == Due::kNow) due_.set_next_tick(now);  // go on at the next slow call
    if (slots_.drained().find(0) != Slots::Tree::kNone) due_.note();   // while the program runs: they may become much
  }
  [[nodiscard]] Due purge_idle_locked(std::uint64_t now) noexcept {
    budget_.forget(now);
    due_.clear();
    Effort effort = kStep;
    bool more = purge_due(now, effort);
    more = purge_waiting_records(now, delay_ms_) || more;
    more = look_at_empties(now, effort) || more;
    more = (look_at_drained(now, effort) && is_much_scattered()) || more;
    if (more) due_.note();
    return !effort.left() ? Due::kNow : more ? Due::kLater : Due::kNothing;
  }
  // Free spans whose chunk saw no free for the delay. Returns whether some are left.
  [[nodiscard]] bool purge_due(std::uint64_t now, Effort& effort) noexcept {
    for (std::uint32_t c = chunks_.find_dirty(); c != Chunks::kNoChunk; c = chunks_.next_dirty(c)) {
      if (!is_past(chunks_.chunk(c).freed_at, now, delay_ms_)) continue;
      for (const Part part : {Part::kWhole, Part::kAny})
        for (unsigned i = 0; i < Units::kChunkSpans && effort.left() && dirty_spans(c, part) != 0; ++i)
          if (!purge_chunk(c, part, now, effort)) return true;
      if (!effort.left()) return true;
    }
    return chunks_.find_dirty() != Chunks::kNoChunk;
  }
  // Wholly free spans of which no slot was handed out between two looks: a thread that empties and fills its spans again and
  // again keeps them, and its cache keeps their lines. Returns whether some are left.
  [[nodiscard]] bool look_at_empties(std::uint64_t now, Effort& effort) noexcept {
    constexpr unsigned kLooks = 4096;
    constexpr std::size_t kReclaimBytes = 32 * 1024;  // cost of taking a span back, beside giving pages back
    SpanIndex i = slots_.find_empty(empties_cursor_);
    if (i == Slots::Tree::kNone) i = slots_.find_empty(0);
    for (unsigned looks = 0; i != Slots::Tree::kNone && looks < kLooks && effort.left();
         ++looks, i = slots_.find_empty(i + 1)) {
      const SizeClass c = slots_.slot_class_of_span(i);
      if (c.is_slot() &&
          (slots_.span(i).page_hints.fetch_or(PageHints::kLooked, std::memory_order_relaxed) & PageHints::kLooked) == 0)
        continue;
      effort.bytes -= std::min(effort.bytes, kReclaimBytes);
      if (slots_.leave_empties(i)) spans_.give_spans(i, 1, now, false);
    }
    empties_cursor_ = i == Slots::Tree::kNone ? 0 : i;
    if (i != Slots::Tree::kNone) effort.calls = 0;  // the rest is for the next slow call
    return slots_.find_empty(0) != Slots::Tree::kNone;
  }
  // True if partly used spans may have enough free pages for a search to be worth while.
  [[nodiscard]] bool is_much_scattered() noexcept {
    return budget_.scattered() >= Config::kKeepBytes / 2 + budget_.in_use() / Config::kKeepShare;
  }
  // The same for wholly free pages of spans that are partly in use, if there is much to be had.
  [[nodiscard]] bool look_at_drained(std::uint64_t now, Effort& effort) noexcept {
    constexpr unsigned kLooks = 512;
    bool refused = false;
    if (!is_much_scattered()) return false;
    if (now < next_drained_look_) return true;
    SpanIndex i = slots_.drained().find(drained_cursor_);
    for (unsigned looks = 0; i != Slots::Tree::kNone && looks < kLooks && effort.left();
         ++looks, i = slots_.drained().find(i + 1)) {
      const SizeClass c = slots_.slot_class_of_span(i);
      if (c.is_slot() &&
          (slots_.span(i).page_hints.fetch_or(PageHints::kDrained, std::memory_order_relaxed) & PageHints::kDrained) == 0)
        continue;
      slots_.retire_drained(i);
      const SizeClass left = slots_.class_after_leaving(i);
      if (left.is_slot() && !purge_pages_of(i, left, now, effort)) {
        refused = true;  // as under mlockall(): others would be, too
        break;
      }
    }
    drained_cursor_ = i == Slots::Tree::kNone ? 0 : i + (refused ? 1 : 0);
    if (i != Slots::Tree::kNone && !refused) {
      effort.calls = 0;
      return true;
    }
    next_drained_look_ = now + delay_ms_ / 2;  // a whole round was made, or is of no use
    return slots_.drained().find(0) != Slots::Tree::kNone;
  }

  // --- one thing at a time -------------------------------------------------------------------------------------------

  // `split`: huge pages, too. False: nothing is left that can go back.
  [[nodiscard]] bool purge_something(std::uint64_t now, Effort& effort, bool split = true) noexcept {
    constexpr std::size_t kLookBytes = 32 * 1024;  // cost of a look, beside giving pages back
    if (const SpanIndex i = slots_.reclaim_empty_span(true); i != kNoSpan) {
      effort.bytes -= std::min(effort.bytes, kLookBytes);
      effort.reclaimed += Units::kSpanBytes;
      spans_.give_spans(i, 1, now);
      return true;
    }
    for (const Part part : {Part::kWhole, Part::kSmallPages, Part::kAny}) {
      if (part == Part::kAny && !split) break;
      const std::uint32_t c = oldest_dirty_chunk(part);
      if (c != Chunks::kNoChunk && purge_chunk(c, part, now, effort)) return true;
    }
    const SpanIndex i = next_drained(split);
    if (i == Slots::Tree::kNone) return false;
    slots_.retire_drained(i);
    effort.bytes -= std::min(effort.bytes, kLookBytes);
    const SizeClass c = slots_.class_after_leaving(i);
    return !c.is_slot() || purge_pages_of(i, c, now, effort);
  }
  // The next span in turn in which slots became free: under small pages, or, if `split`, any; kNone: a few looks found none.
  // Where the purger thread runs, it looks at these after the delay, and frees do not.
  [[nodiscard]] SpanIndex next_drained(bool split) noexcept {
    constexpr unsigned kLooks = 64;
    if (!split && budget_.is_purged_in_time()) return Slots::Tree::kNone;
    for (unsigned looks = 0; looks < kLooks; ++looks) {
      SpanIndex i = slots_.drained().find(drained_cursor_);
      if (i == Slots::Tree::kNone) i = slots_.drained().find(0);
      drained_cursor_ = i == Slots::Tree::kNone ? 0 : i + 1;
      if (i == Slots::Tree::kNone || split || !huge_.is_huge(i)) return i;
    }
    return Slots::Tree::kNone;
  }
  // Bits of the free spans that hold pages and may go back: of the first part of a huge page's size that is free as a whole,
  // of small pages, of any.
  [[nodiscard]] std::uint64_t dirty_spans(std::uint32_t c, Part kind) noexcept {
    const std::uint64_t dirty = chunks_.free_and_dirty(c);
    if (dirty == 0 || kind == Part::kAny) return dirty;
    const auto& chunk = chunks_.chunk(c);
    const std::uint64_t free = chunk.free.load(std::memory_order_relaxed);
    std::uint64_t small = dirty;
    const unsigned huge = chunk.huge.load(std::memory_order_relaxed);
    const bool may_be_huge = !huge_.are_off() && chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kSlots;
    for (unsigned part = 0; part < Huge::kHugeParts; ++part) {
      const std::uint64_t all = base::low_bits(Huge::kHugeSpans) << part * Huge::kHugeSpans;
      const bool is_huge = (huge >> part & 1) != 0;
      if (kind == Part::kWhole && (is_huge || may_be_huge) && (free & all) == all && (dirty & all) != 0)
        return is_huge ? all : dirty & all;
      if (is_huge) small &= ~all;
    }
    return kind == Part::kSmallPages ? small : 0;
  }
  // Finds, of a few chunks behind the cursor that hold such pages, the one where spans became free least lately; kNoChunk:
  // none does.
  [[nodiscard]] std::uint32_t oldest_dirty_chunk(Part part) noexcept {
    constexpr unsigned kGood = 4, kLooks = 64;
    std::uint32_t oldest = Chunks::kNoChunk, oldest_at = 0;
    for (const std::uint32_t from : {purge_cursor_, std::uint32_t{0}}) {
      std::uint32_t c = chunks_.find_dirty(from);
      for (unsigned good = 0, looks = 0; c != Chunks::kNoChunk && good < kGood && looks < kLooks;
           ++looks, c = chunks_.next_dirty(c)) {
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
  [[nodiscard]] bool purge_chunk(std::uint32_t chunk, Part part, std::uint64_t now, Effort& effort) noexcept {
    const std::uint64_t among = dirty_spans(chunk, part);
    TakenSpans t;
    unsigned n = Huge::kHugeSpans;
    if (among == 0) return true;
    if (part == Part::kWhole && std::popcount(among) == Huge::kHugeSpans) {
      t = chunks_.take_exactly(chunk * Units::kChunkSpans + base::lowest_bit(among), n);
    } else {
      t.first = chunks_.take_dirty(chunk, kMostStepSpans, n, among);
      t.dirty = n;
    }
    if (t.first == kNoSpan) return true;
    const auto time = static_cast<std::uint32_t>(now);
    if (!purge_range(range_.address(t.first), std::size_t{n} << Units::kSpanShift, effort)) {
      chunks_.chunk(chunk).freed_at.store(time, std::memory_order_relaxed);
      chunks_.give_untouched(t, n);
      return false;
    }
    chunks_.give_clean(t.first, n, time);
    (void)spans_.report(-static_cast<std::int64_t>(t.dirty), 0);
    note_records_of(chunk, now);
    return true;
  }
  [[nodiscard]] bool purge_range(std::uintptr_t at, std::size_t bytes, Effort& effort) noexcept {
    effort.spend(bytes);
    huge_.split_huge_pages(at, bytes);
    if (!pages_->purge(reinterpret_cast<void*>(at), bytes)) return false;
    counters_.purge_calls.fetch_add(1, std::memory_order_relaxed);
    counters_.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }

  // --- the records of spans ------------------------------------------------------------------------------------------

  // The records of a chunk that became wholly free and clean may go back; those of the last few chunks wait, since memory
  // that rises and falls would take their pages again at once, each by two faults.
  void note_records_of(std::uint32_t chunk, std::uint64_t now) noexcept {
    const auto& c = chunks_.chunk(chunk);
    if (!c.has_records.load(std::memory_order_relaxed) || c.free.load(std::memory_order_relaxed) != Chunks::kAll ||
        c.dirty.load(std::memory_order_relaxed) != 0 ||
        std::ranges::find(waiting_records_, chunk + 1) != std::end(waiting_records_))
      return;
    std::uint32_t& place = waiting_records_[next_waiting_++ % kWaitingRecords];
    if (const std::uint32_t former = std::exchange(place, chunk + 1); former != 0) purge_records_of(former - 1, now);
  }
  // Those whose chunk went back at least `age` milliseconds ago. Returns whether some are left.
  [[nodiscard]] bool purge_waiting_records(std::uint64_t now, std::uint64_t age) noexcept {
    bool left = false;
    for (std::uint32_t& place : waiting_records_) {
      if (place == 0) continue;
      if (!is_past(chunks_.chunk(place - 1).purged_at, now + 1, age)) {  // which was made odd
        left = true;
        continue;
      }
      purge_records_of(std::exchange(place, 0) - 1, now);
    }
    return left;
  }
  // The records of the spans of a chunk that is wholly free and clean are zero, except for stale hints, and zero is what
  // they may read as. We hold all of its spans.
  void purge_records_of(std::uint32_t chunk, std::uint64_t now) noexcept {
    auto& c = chunks_.chunk(chunk);
    if (!c.has_records.load(std::memory_order_relaxed)) return;
    if (c.free.load(std::memory_order_relaxed) != Chunks::kAll || c.dirty.load(std::memory_order_relaxed) != 0) return;
    const SpanIndex first = chunk * Units::kChunkSpans;
    if (chunks_.take_exactly(first, Units::kChunkSpans).first == kNoSpan) return;
    const auto purge = [&](const void* begin, std::size_t bytes) {
      const auto at = reinterpret_cast<std::uintptr_t>(begin);
      const std::uintptr_t from = base::align_up(at, Config::page_bytes()),
                           end = base::align_down(at + bytes, Config::page_bytes());
      if (end > from) (void)pages_->purge(reinterpret_cast<void*>(from), end - from);
    };
    purge(&slots_.span(first), Units::kChunkSpans * sizeof(typename Slots::SpanType));
    for (const auto& of : slots_.storages())
      purge(&of.words[pool::word_index(first, 0)],
            Units::kChunkSpans * of.words.words_per_span * sizeof(typename Slots::Word));
    c.has_records.store(false, std::memory_order_relaxed);
    chunks_.give(first, Units::kChunkSpans, false, static_cast<std::uint32_t>(now));
  }

  // --- pages inside spans --------------------------------------------------------------------------------------------

  // False: the system refuses; the span stays in the set of drained.
  [[nodiscard]] bool purge_pages_of(SpanIndex i, SizeClass c, std::uint64_t now, Effort& effort) noexcept {
    const auto returned =
        static_cast<std::uint32_t>(slots_.span(i).page_hints.load(std::memory_order_relaxed) & PageHints::kReturned);
    const std::uint32_t pages = slots_.free_pages_of(i, c) & ~returned;
    for (unsigned p = 0; p < Units::pages_per_span(); ++p) {
      if ((pages >> p & 1) == 0) continue;
      const unsigned end = p + static_cast<unsigned>(std::countr_one(pages >> p));
      if (!purge_pages(i, c, p, end, effort)) {
        slots_.drained().set(i);
        return false;
      }
      due_.note_swept(now);
      p = end;
    }
    return true;
  }
  // Returns the pages [page, end) of span `i`, all of whose slots are taken while the system call runs. Nothing happens if
  // one is not free, or the span has changed its class, which cannot be once we hold slots. False: the system refuses.
  [[nodiscard]] bool purge_pages(SpanIndex i, SizeClass c, unsigned page, unsigned end, Effort& effort) noexcept {
    auto& pool = slots_.pool(c);
    const std::size_t bytes = Classes::slot_bytes(c);
    const auto [from, to] = slots_on_pages<Config>(pool.shape().slots, bytes, page, end);
    const unsigned first_word = from / 64, last_word = (to - 1) / 64;
    unsigned w = first_word;
    while (w <= last_word && pool.take_exactly(pool::word_index(i, w), pool::bits_of_word(w, from, to))) ++w;
    const bool ours = w > last_word && slots_.class_of_span(i) == c;
    const bool done =
        ours && purge_range(range_.address(i) + page * Config::page_bytes(), (end - page) * Config::page_bytes(), effort);
    if (done) {
      const std::uint64_t mask = base::low_bits(end) & ~base::low_bits(page);
      const std::uint64_t fresh = mask & ~slots_.span(i).page_hints.fetch_or(mask, std::memory_order_relaxed);
      budget_.pages_returned(static_cast<std::int64_t>(static_cast<unsigned>(std::popcount(fresh)) * Config::page_bytes()));
    }
    while (w-- > first_word) slots_.put_back(pool::word_index(i, w), pool::bits_of_word(w, from, to));
    return done || !ours;
  }

  const SpanRange<A, Config>& range_;
  Slots& slots_;
  Spans& spans_;
  Chunks& chunks_;
  Huge& huge_;
  Budget<A, Config>& budget_;
  DueNote<A>& due_;
  ArenaCounters<A>& counters_;
  Pages* pages_ = nullptr;
  std::uint64_t delay_ms_ = 0;
  typename A::template atomic<std::uint64_t> limit_{0};
  typename A::template atomic<bool> limit_was_met_{false};

  // Under the lock.
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  std::uint32_t purge_cursor_ = 0;
  SpanIndex empties_cursor_ = 0, drained_cursor_ = 0;
  std::uint64_t next_drained_look_ = 0;               // milliseconds
  std::uint32_t waiting_records_[kWaitingRecords]{};  // chunks, plus one
  unsigned next_waiting_ = 0;
};

}  // namespace freehold::alloc
