// SPDX-License-Identifier: MIT
// The memory of the engine: hands out spans of 64 KiB to the size classes, and runs of spans to blocks above 32 KiB; takes
// them back, and gives free memory back to the system. Core (core.hpp) is its only user.
//
// The arena is one range of address space, cut into chunks of 64 spans, and grows chunk by chunk. A span belongs to a size
// class, to a run, or is free. Slot chunks (ChunkKind::kSlots) hold the spans of classes up to 2 KiB, packed, so that
// transparent huge pages pay; run chunks (kRuns) hold runs and the spans of larger classes. When memory is short either kind
// serves both. A span of a class whose slots are all free is reclaimed: its slots are taken out of the class's word pool,
// all or none, and the span may go to any class, join a run, or be purged.
//
// Life of a span: new chunk -> claim or run -> free and dirty -> (over budget, or after a delay) purged, clean -> claim …
//
// It is made of parts, each of which knows only those above it. Arena lays out their tables and joins them:
//
//   class_spans.hpp   the spans of classes, and their slots    arena_purge.hpp  giving memory back, and the limit
//   free_spans.hpp    the free spans, and each CPU's part      arena_spans.hpp  where a span comes from
//   arena_huge.hpp    which parts of chunks have huge pages    arena_runs.hpp   runs, and the spans that threads keep
//   arena_growth.hpp  new chunks
//
// Locks: none to allocate, free or hand over spans; those of ArenaGrowth and ArenaPurge. Memory that is being purged belongs
// to the purging thread. Errors: kNoSpan when address space, memory or the page source is exhausted; nothing is
// lost then. Source: spans and purge delay after tcmalloc and mimalloc; reclaiming by the free bits alone is
// docs/design.md's.
#pragma once
#include <bit>
#include <cstdint>

#include "freehold/alloc/large/arena_runs.hpp"
#include "freehold/alloc/return/arena_huge.hpp"
#include "freehold/alloc/return/arena_purge.hpp"
#include "freehold/alloc/spans/arena_growth.hpp"
#include "freehold/alloc/spans/arena_spans.hpp"
#include "freehold/alloc/spans/class_spans.hpp"
#include "freehold/alloc/spans/free_spans.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class Arena {
 public:
  using Units = ArenaUnits<Config>;
  using Classes = typename Config::Classes;
  using BudgetType = Budget<A, Config>;
  using Slots = ArenaSlots<A, Config>;
  using Runs = ArenaRuns<A, Config, Pages>;
  using Purge = ArenaPurge<A, Config, Pages>;
  static constexpr std::size_t kSpanBytes = Units::kSpanBytes, kChunkBytes = Units::kChunkBytes;
  static constexpr unsigned kSpanShift = Units::kSpanShift, kChunkSpans = Units::kChunkSpans;
  // A WordIndex numbers 2^26 spans.
  static constexpr std::size_t kMaxCapacityBytes = Units::kSpanBytes << 26;

  constexpr Arena() noexcept = default;

  // Finds a place in the address space. False: the page source refused; may be tried again. Not thread-safe.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings) noexcept;

  // --- its parts -----------------------------------------------------------------------------------------------------

  [[nodiscard]] constexpr Slots& slots() noexcept { return slots_; }
  [[nodiscard]] Runs& runs() noexcept { return runs_; }
  [[nodiscard]] const Runs& runs() const noexcept { return runs_; }
  [[nodiscard]] Purge& purge() noexcept { return purge_; }
  [[nodiscard]] const Purge& purge() const noexcept { return purge_; }
  [[nodiscard]] SpanSource<A, Config, Pages>& source() noexcept { return source_; }
  [[nodiscard]] constexpr FreeSpans<A, Config>& free_spans() noexcept { return free_; }
  [[nodiscard]] BudgetType& budget() noexcept { return budget_; }
  [[nodiscard]] DueNote<A>& due() noexcept { return due_; }

  // --- what a refill and a drain need of them ------------------------------------------------------------------------

  [[nodiscard]] std::uintptr_t base() const noexcept { return range_.base(); }
  [[nodiscard]] std::size_t span_count() const noexcept { return range_.count(); }
  [[nodiscard]] std::uintptr_t address(SpanIndex i) const noexcept { return range_.address(i); }
  [[nodiscard]] auto* span_classes() const noexcept { return slots_.span_classes(); }
  [[nodiscard]] auto& pool(SizeClass c) noexcept { return slots_.pool(c); }
  [[nodiscard]] auto& geometry(SizeClass c) const noexcept { return slots_.geometry(c); }
  [[nodiscard]] auto& words_of(SizeClass c) const noexcept { return slots_.words_of(c); }
  [[nodiscard]] SizeClass class_of_span(SpanIndex i) const noexcept { return slots_.class_of_span(i); }
  [[nodiscard]] pool::Taken claim(SizeClass c, unsigned keep, std::uint32_t thread_id, std::uint64_t now) noexcept {
    return source_.claim(c, keep, thread_id, now);
  }
  // Reports what caches took from the pools (positive) or gave back since their last report, in bytes. Returns whether free
  // memory should go back now.
  [[nodiscard]] bool report_slots(std::int64_t bytes) noexcept {
    budget_.slots_taken(bytes);
    return bytes < 0 && purge_.is_worth_a_step();
  }
  // Memory is short: what is wholly free is unmapped, as far as a mapping of `bytes` needs it. False: it would not help.
  [[nodiscard]] bool unmap_for(std::size_t bytes, std::uint64_t now) noexcept {
    if (!growth_.would_fit(bytes, growth_.memory_bytes())) return false;
    source_.reclaim_all(now);
    return growth_.unmap_for(bytes);
  }
  // In a fork's child, whose only thread holds none.
  void reset_locks() noexcept {
    growth_.lock().reset();
    purge_.lock().reset();
  }

  // --- for statistics and tests --------------------------------------------------------------------------------------

  [[nodiscard]] const ArenaCounters<A>& counters() const noexcept { return counters_; }
  // Calls f(figure, its atomic), or f(figure, the first, how many, bytes from one to the next).
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    budget_.for_each_live_figure(f);
    free_.for_each_live_figure(f);
    f(LiveFigure::kPurgedBytes, counters_.purged_bytes);
    f(LiveFigure::kPurgeCalls, counters_.purge_calls);
    f(LiveFigure::kSpanClaims, counters_.span_claims);
    f(LiveFigure::kSpanReturns, counters_.span_returns);
    f(LiveFigure::kLockWaits, growth_.lock().waits().counter());
    purge_.for_each_live_figure(f);
  }
  // Tells readers outside the process where the spans of the size classes are.
  void add_live_classes(LiveClasses& to) const noexcept {
    to.span_count = reinterpret_cast<std::uintptr_t>(&range_.counter());
    slots_.add_live_classes(to);
  }
  [[nodiscard]] std::uint64_t lock_waits() noexcept {
    return growth_.lock().waits().count() + purge_.lock().waits().count();
  }
  [[nodiscard]] std::uint64_t free_dirty_bytes() const noexcept { return free_.free_dirty_bytes(chunk_count()); }
  [[nodiscard]] std::uint64_t committed_bytes() noexcept { return growth_.memory_bytes(); }
  [[nodiscard]] std::uint64_t metadata_bytes() noexcept { return growth_.table_bytes(); }
  // Calls f(span, its size class or none) for every span that exists. The records of one that has a class can be read.
  template <class F>
  void for_each_span(F&& f) noexcept {
    const auto count = static_cast<SpanIndex>(span_count());
    for (SpanIndex i = 0; i < count; ++i)
      if (free_.chunks().chunk(i / Units::kChunkSpans).kind.load(std::memory_order_relaxed) != ChunkKind::kNone)
        f(i, slots_.slot_class_of_span(i));
  }
  // The invariants of all parts; at rest. `kept`: whether a thread keeps the span as a free one.
  template <class IsKept>
  [[nodiscard]] bool check_invariants(IsKept kept) noexcept {
    if (!free_.chunks().check_invariants(chunk_count())) return false;
    bool good = true;
    SpanIndex run_end = 0;
    for_each_span([&](SpanIndex i, SizeClass c) {
      if (const auto run = runs_.run(i); run.pages() != 0) {
        good = good && !c.is_slot() && i >= run_end && Units::spans_of(run.pages()) <= run.spans();
        run_end = i + run.spans();
      }
      const int places = (free_.chunks().is_free(i) ? 1 : 0) + (c.is_slot() || i < run_end ? 1 : 0) + (kept(i) ? 1 : 0);
      good = good && places == (growth_.is_open(i) ? 1 : 0);  // at rest nothing is on its way between two
      good = good && slots_.check_span(i, c);
    });
    return good;
  }
  [[nodiscard]] bool check_invariants() noexcept {
    return check_invariants([](SpanIndex) { return false; });
  }
  // Threads have not reported these yet: bytes of slots that they took, spans that became free and dirty, runs in use; and
  // spans that they keep.
  struct Unreported {
    std::int64_t slot_bytes = 0, dirty_spans = 0, run_spans = 0, kept_dirty_spans = 0;
  };
  // True if the budget's figures are what a count over the spans says. Call at rest.
  [[nodiscard]] bool check_accounts(const Unreported& unreported) noexcept {
    std::int64_t live = 0, class_spans = 0, returned = 0, run_spans = 0;
    for_each_span([&](SpanIndex i, SizeClass c) {
      run_spans += runs_.run_spans(i);
      returned += std::popcount(slots_.span(i).page_hints.load(std::memory_order_relaxed) & PageHints::kReturned);
      if (!c.is_slot()) return;
      ++class_spans;
      live += static_cast<std::int64_t>((pool(c).shape().slots - pool(c).free_slots(i)) * Classes::slot_bytes(c));
    });
    using Shard = typename BudgetType::Shard;
    constexpr auto kBytes = static_cast<std::int64_t>(Units::kSpanBytes);
    auto told = budget_.figures();
    told.dirty += free_.unreported(&Shard::dirty) + unreported.dirty_spans * kBytes;
    told.runs += free_.unreported(&Shard::runs) + unreported.run_spans * kBytes;
    return told.live + unreported.slot_bytes == live && told.class_spans == class_spans * kBytes &&
           told.returned == returned * static_cast<std::int64_t>(Config::page_bytes()) && told.runs == run_spans * kBytes &&
           told.dirty == static_cast<std::int64_t>(free_dirty_bytes()) + unreported.kept_dirty_spans * kBytes;
  }

 private:
  using Word = typename Slots::Word;
  using Chunks = typename FreeSpans<A, Config>::Chunks;

  [[nodiscard]] std::uint32_t chunk_count() const noexcept {
    return static_cast<std::uint32_t>(span_count() / Units::kChunkSpans);
  }

  // Read by every allocation and free; all but the number of spans written by init() only.
  SpanRange<A, Config> range_;
  Slots slots_{budget_, due_, counters_};
  FreeSpans<A, Config> free_{budget_, due_};
  BudgetType budget_;
  ArenaCounters<A> counters_;
  DueNote<A> due_;
  HugeParts<A, Config, Pages> huge_{range_, free_.chunks(), budget_};
  Purge purge_{range_, slots_, free_, huge_, budget_, due_, counters_};
  ArenaGrowth<A, Config, Pages> growth_{range_, free_, huge_};
  SpanSource<A, Config, Pages> source_{slots_, free_, budget_, huge_, growth_, purge_};
  Runs runs_{range_, free_, due_, growth_, purge_, source_};
};

template <sync::Atomics A, class Config, os::PageSource Pages>
bool Arena<A, Config, Pages>::init(Pages& pages, const ArenaSettings& settings) noexcept {
  constexpr unsigned kChunkShift = std::bit_width(Units::kChunkSpans) - 1;
  using Hints = typename Slots::Hints;
  using Span = typename Slots::SpanType;
  const std::size_t spans = settings.capacity_bytes >> Units::kSpanShift, chunks = spans / Units::kChunkSpans;
  auto& space = growth_.space();
  space = {};
  const auto add_tree = [&](std::size_t bits, unsigned shift, std::size_t stride) {
    unsigned first = 0;
    for (std::size_t words = base::ceil_div(bits, 64), level = 0;; words = base::ceil_div(words, 64), ++level) {
      shift += 6;
      const unsigned t = space.add_table(stride * sizeof(Word), shift, words, level != 0);
      if (level == 0) first = t;
      if (words == 1) return first;
    }
  };
  const unsigned span_classes = space.add_table(sizeof(typename Slots::ClassByte), 0, spans);
  const unsigned hints = space.add_table(sizeof(Hints), 0, spans);
  const unsigned runs = space.add_table(sizeof(typename Runs::RunWord), 0, spans);
  const unsigned records = space.add_table(sizeof(Span), 0, spans);
  const unsigned words = space.add_table(Config::kWordsPerSpan * sizeof(Word), 0, spans);
  const unsigned few_words = space.add_table(Slots::kFewWords * sizeof(Word), 0, spans);
  const unsigned chunk_records = space.add_table(sizeof(Chunk<A>), kChunkShift, chunks);
  const unsigned chunk_words = add_tree(chunks, kChunkShift, std::size_t{Chunks::kTrees} * settings.chunk_stripes);
  const unsigned tree_words = add_tree(spans, 0, Slots::TreeWords::stride(settings.stripes));

  huge_.init(pages, settings.huge_pages);
  purge_.init(pages, settings);
  if (!growth_.init(pages, settings)) return false;
  range_.start_at(reinterpret_cast<std::uintptr_t>(space.memory()));
  slots_.attach({static_cast<typename Slots::ClassByte*>(space.table(span_classes)), static_cast<Hints*>(space.table(hints)),
                 static_cast<Span*>(space.table(records)), static_cast<Word*>(space.table(words)),
                 static_cast<Word*>(space.table(few_words)), static_cast<Word*>(space.table(tree_words))},
                base(), spans, settings.stripes);
  free_.chunks().attach(static_cast<Chunk<A>*>(space.table(chunk_records)), static_cast<Word*>(space.table(chunk_words)),
                        chunks, settings.chunk_stripes);
  runs_.attach(static_cast<typename Runs::RunWord*>(space.table(runs)));
  return true;
}

}  // namespace freehold::alloc
