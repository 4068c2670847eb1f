// SPDX-License-Identifier: MIT
// The source of spans. A span is a free one that may have pages; one of a class whose slots are all free; a clean one; one
// of a new chunk; and when memory is short, any of these in any chunk.
//
//   Invariant: what leaves or enters the free spans here is reported to the budget, and the limit is asked for clean ones.
//
// Any thread; the locks are those of ArenaGrowth, and of ArenaPurge under a limit. Errors: kNoSpan when memory is exhausted.
#pragma once
#include "freehold/alloc/return/arena_purge.hpp"
#include "freehold/alloc/spans/arena_growth.hpp"
#include "freehold/alloc/spans/class_spans.hpp"
#include "freehold/alloc/spans/free_spans.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class SpanSource {
 public:
  using Units = ArenaUnits<Config>;
  using Slots = ArenaSlots<A, Config>;
  using Spans = FreeSpans<A, Config>;
  using Chunks = typename Spans::Chunks;

  constexpr SpanSource(Slots& slots, Spans& spans, Budget<A, Config>& budget, HugeParts<A, Config, Pages>& huge,
                       ArenaGrowth<A, Config, Pages>& growth, ArenaPurge<A, Config, Pages>& purge) noexcept
      : slots_(slots),
        spans_(spans),
        chunks_(spans.chunks()),
        budget_(budget),
        huge_(huge),
        growth_(growth),
        purge_(purge) {}

  // Gives class `c` a span, worked in by `thread_id`, and the caller `keep` of its slots (at most 64). bits == 0: no memory.
  [[nodiscard]] pool::Taken claim(SizeClass c, unsigned keep, std::uint32_t thread_id, std::uint64_t now) noexcept {
    const SpanIndex i = span_for(c, now);
    if (i == kNoSpan) return {};
    slots_.set_user(i, thread_id);
    auto& chunk = chunks_.chunk(i / Units::kChunkSpans);
    if (!chunk.has_records.load(std::memory_order_relaxed)) chunk.has_records.store(true, std::memory_order_relaxed);
    return slots_.add_span(i, c, keep);
  }
  // `n` neighbouring spans, the first at a multiple of `alignment`; `reuse`: also one of a class that is wholly free.
  // Free spans from wherever there are some; accounted for as no longer free.
  [[nodiscard]] TakenSpans take_spans(ChunkKind kind, unsigned n, unsigned alignment, bool reuse, std::uint64_t now,
                                      bool grows = true) noexcept {
    const Searcher by = spans_.searcher();
    TakenSpans t = take_or_reuse(kind, n, alignment, by, reuse, now);
    if (t.first == kNoSpan && !grows) return t;
    if (t.first == kNoSpan) t = growth_.take_or_grow(kind, n, alignment, by, now);
    if (t.first == kNoSpan) t = take_anywhere(kind, n, alignment, by, now);
    if (t.first == kNoSpan) return t;
    (void)spans_.report(spans_.shard_of(by), -static_cast<std::int64_t>(t.dirty), 0);
    if (t.dirty == n || may_use_fresh(t, n, now)) return t;
    spans_.give_untouched(t, n);
    return {};
  }
  // Wholly free spans of classes among the runs become free spans, a few of them. Returns whether there were some.
  [[nodiscard]] bool reclaim_for_runs() noexcept {
    constexpr unsigned kMost = Config::kReclaimedForRuns, kLooks = 4 * kMost;
    unsigned reclaimed = 0;
    if constexpr (kMost != 0) {
      SpanIndex i = slots_.find_empty(0);
      for (unsigned looks = 0; i != Slots::Tree::kNone && looks < kLooks && reclaimed < kMost;
           ++looks, i = slots_.find_empty(i + 1)) {
        // Relaxed: the kind of a chunk in use does not change.
        if (chunks_.chunk(i / Units::kChunkSpans).kind.load(std::memory_order_relaxed) != ChunkKind::kRuns) continue;
        if (!slots_.leave_empties(i)) continue;
        spans_.give_spans(i, 1, 0, false);
        ++reclaimed;
      }
    }
    return reclaimed != 0;
  }
  // Memory is short: wholly free spans of every class become free spans.
  void reclaim_all(std::uint64_t now) noexcept {
    for (SpanIndex i = slots_.reclaim_empty_span(true); i != kNoSpan; i = slots_.reclaim_empty_span(true))
      spans_.give_spans(i, 1, now);
  }
  void regret_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept {
    if (Budget<A, Config>::is_soon(t.purged_at, now))
      budget_.regret(static_cast<std::int64_t>((n - t.dirty) * Units::kSpanBytes), now);
  }
  // Reports changes of free and of used spans; relieves if they break the budget.
  void account(std::int64_t dirty_spans, std::int64_t run_spans, std::uint64_t now) noexcept {
    const bool reported = spans_.report(dirty_spans, run_spans);
    if (reported && run_spans < 0 && purge_.is_worth_a_step())
      purge_.relieve(now, static_cast<std::size_t>(-run_spans) << Units::kSpanShift);
  }

  [[nodiscard]] auto& huge() noexcept { return huge_; }

 private:
  // The chunks that spans of class c come from.
  [[nodiscard]] static constexpr ChunkKind chunk_kind_of(SizeClass c) noexcept {
    return Config::Classes::slot_bytes(c) <= Config::kSlotChunkMaxBytes ? ChunkKind::kSlots : ChunkKind::kRuns;
  }
  // A span that is the caller's: free and warm, or of another class that has become wholly free, or clean.
  [[nodiscard]] SpanIndex span_for(SizeClass c, std::uint64_t now) noexcept {
    const TakenSpans t = take_spans(chunk_kind_of(c), 1, 1, true, now);
    if (t.first != kNoSpan && t.dirty == 0) {
      slots_.set_home(t.first);
      huge_.ask_for_huge_page(t);
    }
    return t.first;
  }
  // Takes, before clean memory, spans of classes that have become wholly free; for a span of a class (`reuse`) one of
  // another class.
  [[nodiscard]] TakenSpans take_or_reuse(ChunkKind kind, unsigned n, unsigned alignment, Searcher by, bool reuse,
                                         std::uint64_t now) noexcept {
    const bool anywhere = growth_.chunks_are_dear();
    TakenSpans t =
        chunks_.take(kind, n, alignment, by, spans_.shard_of(by).cursor(kind), anywhere, static_cast<std::uint32_t>(now));
    if (t.dirty != n && !reuse && reclaim_for_runs()) {
      if (t.first != kNoSpan) chunks_.give_untouched(t, n);
      t = chunks_.take(kind, n, alignment, by, spans_.shard_of(by).cursor(kind), anywhere, static_cast<std::uint32_t>(now));
    }
    if (!reuse || t.dirty != 0) return t;
    const SpanIndex i = slots_.reclaim_empty_span(false);
    if (i == kNoSpan) return t;
    if (t.first != kNoSpan) chunks_.give_untouched(t, n);
    (void)spans_.report(spans_.shard_of(by), 1, 0);
    return {i, 1, 0};
  }
  // Memory is short: anything will do, and wholly free spans of every class become free spans.
  [[nodiscard]] TakenSpans take_anywhere(ChunkKind kind, unsigned n, unsigned alignment, Searcher by,
                                         std::uint64_t now) noexcept {
    for (const bool reclaimed : {false, true}) {
      if (reclaimed) reclaim_all(now);
      for (const ChunkKind k : {kind, other_kind(kind)}) {
        const TakenSpans t =
            chunks_.take(k, n, alignment, by, spans_.shard_of(by).cursor(k), true, static_cast<std::uint32_t>(now));
        if (t.first != kNoSpan) return t;
      }
    }
    return {};
  }
  // True if the limit allows for the clean ones of n spans, of which the dirty ones are accounted for as no longer free and
  // not yet as used; regrets that they are clean.
  [[nodiscard]] bool may_use_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept {
    if (purge_.limit() != 0 && !purge_.admit(std::size_t{n} * Units::kSpanBytes, now)) return false;
    regret_fresh(t, n, now);
    return true;
  }

  Slots& slots_;
  Spans& spans_;
  Chunks& chunks_;
  Budget<A, Config>& budget_;
  HugeParts<A, Config, Pages>& huge_;
  ArenaGrowth<A, Config, Pages>& growth_;
  ArenaPurge<A, Config, Pages>& purge_;
};

}  // namespace freehold::alloc
