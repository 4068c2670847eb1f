// SPDX-License-Identifier: MIT
// Runs: blocks of 1 to 64 spans in one chunk, from the chunks or from spans that a thread keeps (run_cache.hpp).
//
//   Invariants: run_pages(s) != 0  <=>  a run in use begins at s. No two runs in use overlap.
//               A block lies in its run's pages, and begins at the run's colour.
//
// Any thread, no lock but those of SpanSource. A run that is in use is its user's to free or resize. One of two frees at the
// same time is reported here; if a thread keeps spans of the chunk, unreserve() reports it.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>

#include "freehold/alloc/large/run_cache.hpp"
#include "freehold/alloc/spans/arena_spans.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class ArenaRuns {
 public:
  using Units = ArenaUnits<Config>;
  using Spans = FreeSpans<A, Config>;
  using Chunks = typename Spans::Chunks;
  using RunWord = typename A::template atomic<std::uint32_t>;
  // Free spans that a thread keeps, and those of one chunk.
  using Runs = RunCache<A, Config>;
  using Reserved = typename Runs::Reserved;

  using Run = alloc::Run<Config>;

  constexpr ArenaRuns(const SpanRange<A, Config>& range, Spans& spans, DueNote<A>& due,
                      ArenaGrowth<A, Config, Pages>& growth, ArenaPurge<A, Config, Pages>& purge,
                      SpanSource<A, Config, Pages>& source) noexcept
      : range_(range), spans_(spans), chunks_(spans.chunks()), due_(due), growth_(growth), purge_(purge), source_(source) {}

  // Not thread-safe. `table`: zeroed, a word for each span.
  void attach(RunWord* table) noexcept { table_ = table; }

  // --- look-ups ------------------------------------------------------------------------------------------------------

  // True if a chunk of such blocks would leave a sixteenth of its addresses unused, where these are scarce.
  [[nodiscard]] bool would_waste_addresses(std::size_t bytes) const noexcept {
    const std::size_t used = bytes * (Units::kChunkBytes / base::align_up(bytes, Units::kSpanBytes));
    return growth_.are_addresses_scarce() && used < Units::kChunkBytes / 16 * 15;
  }
  // Pages of the run in use that begins at span i; 0: none does.
  [[nodiscard]] std::uint32_t run_pages(SpanIndex i) const noexcept { return run(i).pages(); }
  // Spans of the run in use that begins at span i: those of its pages, and room to grow; 0: none does.
  [[nodiscard]] unsigned run_spans(SpanIndex i) const noexcept { return run(i).spans(); }
  // The first span of the run in use that span i lies in; kNoSpan: it lies in none. Searches the chunk.
  [[nodiscard]] SpanIndex run_around(SpanIndex i) const noexcept {
    for (SpanIndex first = i - i % Units::kChunkSpans; first <= i; ++first)
      if (i - first < run_spans(first)) return first;
    return kNoSpan;
  }

  // --- from the chunks -----------------------------------------------------------------------------------------------

  // A run of at most a chunk, at a multiple of `alignment` spans; kNoSpan when out of memory, or of free spans if not
  // `grows`.
  [[nodiscard]] RunPlace allocate_run(Run run, unsigned alignment, std::uint64_t now, bool grows = true) noexcept {
    const TakenSpans t = source_.take_spans(ChunkKind::kRuns, run.spans(), alignment, false, now, grows);
    if (t.first == kNoSpan) return {};
    set_run(t.first, run);
    source_.account(0, run.spans(), now);
    return {t.first, t.dirty == 0};
  }
  // The same, of spans that still have their pages, if the CPUs are one group, or the program's one thread asks (`alone`):
  // otherwise each look would fetch a line of another group.
  [[nodiscard]] SpanIndex allocate_dirty(Run run, unsigned alignment, bool alone, std::uint64_t now) noexcept {
    if (!chunks_.is_one_group() && (!alone || spans_.cpus_work_apart())) return kNoSpan;
    const Searcher by = spans_.searcher();
    const TakenSpans t = chunks_.take_dirty_run(run.spans(), alignment, by, spans_.shard_of(by).runs,
                                                growth_.chunks_are_dear(), static_cast<std::uint32_t>(now));
    if (t.first == kNoSpan) return kNoSpan;
    set_run(t.first, run);
    source_.account(-static_cast<std::int64_t>(t.dirty), run.spans(), now);
    return t.first;
  }
  // False, and nothing done: no run in use begins at `first`.
  [[nodiscard]] bool free_run(SpanIndex first, std::uint64_t now) noexcept {
    // Relaxed: an exchange, so that of two frees one sees the other; what the user wrote, the give publishes.
    const unsigned n = std::bit_cast<Run>(table_[first].exchange(0, std::memory_order_relaxed)).spans();
    if (n == 0) return false;
    look(first, n);
    chunks_.give(first, n, true, static_cast<std::uint32_t>(now));
    due_.note();
    source_.account(n, -static_cast<std::int64_t>(n), now);
    return true;
  }
  // Makes the run `pages` pages long where it is, with what lies before the block. False: not possible, nothing changed.
  [[nodiscard]] bool resize_run(SpanIndex first, std::uint32_t pages, std::uint64_t now) noexcept {
    const Run former = run(first);
    const unsigned old = former.spans();
    const unsigned n = Units::spans_of(pages);
    if (n > old) {
      if (first % Units::kChunkSpans + n > Units::kChunkSpans) return false;
      const TakenSpans t = chunks_.take_exactly(first + old, n - old);
      if (t.first == kNoSpan) return false;
      source_.account(-static_cast<std::int64_t>(t.dirty), n - old, now);
      if (t.dirty < n - old && purge_.limit() != 0 && !purge_.admit(0, now)) {
        source_.account(0, -static_cast<std::int64_t>(n - old), now);
        spans_.give_untouched(t, n - old);
        return false;
      }
    }
    // A run that grows keeps its room, and one that shrinks gives it back.
    set_run(first, {pages, pages < former.pages() ? n : std::max<unsigned>(n, old), former.colour()});
    if (n < old && pages < former.pages()) {
      spans_.give_spans(first + n, old - n, now);
      source_.account(0, -static_cast<std::int64_t>(old - n), now);
    }
    return true;
  }

  // --- from spans that the caller keeps ------------------------------------------------------------------------------

  // True if a thread should keep the free spans around a run: not around a large one, of which a thread uses few; not where
  // chunks are dear; and not under a limit, which asks for each clean span.
  [[nodiscard]] bool is_worth_reserving(SpanIndex i) const noexcept {
    // Relaxed, all of it: the kind of a chunk in use does not change, the others are hints.
    if (growth_.chunks_are_dear() || purge_.limit() != 0) return false;
    if (run_spans(i) > Units::kChunkSpans / 2) return false;
    const auto& chunk = chunks_.chunk(i / Units::kChunkSpans);
    return chunk.kind.load(std::memory_order_relaxed) == ChunkKind::kRuns && chunk.free.load(std::memory_order_relaxed) != 0;
  }
  // Adds what else is free in the chunk. Returns whether there was something.
  bool reserve(Reserved& to) noexcept {
    const std::uint64_t more = chunks_.reserve(to.chunk());
    if (more != 0) to.add(more, chunks_.dirty_among(to.chunk(), more));
    return more != 0;
  }
  // Gives back what the caller keeps there. Returns the address of a run that was freed twice; null: none.
  [[nodiscard]] const void* unreserve(Reserved& from, std::uint64_t now) noexcept {
    const std::uint64_t twice = chunks_.unreserve(from.chunk(), from.free(), from.dirty(), static_cast<std::uint32_t>(now));
    from.remove(~std::uint64_t{0});
    due_.note();
    return twice == 0
               ? nullptr
               : reinterpret_cast<const void*>(range_.address(from.chunk() * Units::kChunkSpans + base::lowest_bit(twice)));
  }
  // A run of spans that still have their pages; reports go into `runs`.
  [[nodiscard]] SpanIndex allocate_dirty(Runs& runs, Reserved& from, Run run, unsigned alignment) noexcept {
    if (run.spans() > from.longest()) return kNoSpan;
    const unsigned place = Chunks::find_run(from.dirty(), run.spans(), alignment);
    if (place == Chunks::kNoPlace) {
      if (alignment == 1) from.set_longest(run.spans() - 1U);
      return kNoSpan;
    }
    const SpanIndex first = from.chunk() * Units::kChunkSpans + place;
    from.remove(Chunks::mask_of(first, run.spans()));
    set_run(first, run);
    runs.run_spans += run.spans();
    return first;
  }
  // A run of any spans that the caller keeps there.
  [[nodiscard]] RunPlace allocate_reserved(Runs& runs, Reserved& from, Run run, unsigned alignment,
                                           std::uint64_t now) noexcept {
    const unsigned place = Chunks::find_run(from.free(), run.spans(), alignment);
    if (place == Chunks::kNoPlace) return {};
    const SpanIndex first = from.chunk() * Units::kChunkSpans + place;
    const std::optional<bool> zero =
        use_reserved(runs, from, Chunks::mask_of(first, run.spans()), run.spans(), first, run, now);
    return zero ? RunPlace{first, *zero} : RunPlace{};
  }
  // A run of `n` spans of the caller's becomes spans that it keeps. Of two threads that free a run at the same time both may
  // come here; unreserve() finds it out.
  void free_reserved(Runs& runs, Reserved& to, SpanIndex first, unsigned n) noexcept {
    set_run(first, {});  // no exchange: it would wait for all that the program has just written
    to.add(Chunks::mask_of(first, n), ~std::uint64_t{0});
    runs.run_spans -= n;
  }
  // Makes the run shorter, or longer with spans that the caller keeps behind it. False: not possible, nothing changed.
  [[nodiscard]] bool resize_reserved(Runs& runs, Reserved& kept, SpanIndex first, std::uint32_t pages,
                                     std::uint64_t now) noexcept {
    const Run former = run(first);
    const unsigned old = former.spans();
    const unsigned n = Units::spans_of(pages);
    if (n > old) {
      if (first % Units::kChunkSpans + n > Units::kChunkSpans) return false;
      const std::uint64_t mask = Chunks::mask_of(first + old, n - old);
      return (kept.free() & mask) == mask &&
             use_reserved(runs, kept, mask, n - old, first, {pages, n, former.colour()}, now);
    }
    if (pages >= former.pages()) {
      set_run(first, {pages, old, former.colour()});
      return true;
    }
    set_run(first, {pages, n, former.colour()});
    if (n < old) free_reserved(runs, kept, first + n, old - n);
    return true;
  }
  // Reports changes. Returns whether free memory should go back now.
  [[nodiscard]] bool report(Runs& runs) noexcept {
    for (const Reserved& r : runs)
      if (r.dirty() != 0) {
        look(r.chunk() * Units::kChunkSpans + base::lowest_bit(r.dirty()), 1);
        break;
      }
    const std::int64_t dirty = runs.dirty_spans(), used = std::exchange(runs.run_spans, 0);
    runs.clean_spans = 0;
    return spans_.report(dirty, used) && purge_.is_worth_a_step();
  }
  [[nodiscard, gnu::always_inline]] Run run(SpanIndex i) const noexcept {
    return std::bit_cast<Run>(table_[i].load(std::memory_order_relaxed));  // relaxed: the block is the caller's
  }

 private:
  // Looks whether a page of free spans, which are the caller's and may hold pages, was written: at any of them.
  void look(SpanIndex first, unsigned n) noexcept {
    if constexpr (requires { Config::is_written(nullptr); }) {
      const std::size_t page = std::uint64_t{first * base::kGoldenRatio} * n * Units::pages_per_span() >> 32;
      source_.huge().note_look(
          Config::is_written(reinterpret_cast<const char*>(range_.address(first) + page * Config::page_bytes())));
    }
  }
  void set_run(SpanIndex i, Run run) noexcept {
    table_[i].store(std::bit_cast<std::uint32_t>(run.at(i)), std::memory_order_relaxed);  // the same
  }
  // `run` at `first`, whose `n` spans `mask` (the new ones of a run that grows) come out of what the caller keeps. Returns
  // whether all of these read as zero; nothing: under a limit the arena asks for clean ones.
  [[nodiscard]] std::optional<bool> use_reserved(Runs& runs, Reserved& from, std::uint64_t mask, unsigned n, SpanIndex first,
                                                 Run run, std::uint64_t now) noexcept {
    const std::uint64_t with_pages = from.dirty() & mask;
    auto dirty = n;
    if (with_pages != mask) {
      dirty = static_cast<unsigned>(std::popcount(with_pages));
      if (purge_.limit() != 0) return {};
      const auto& chunk = chunks_.chunk(from.chunk());
      source_.regret_fresh({first, dirty, chunk.purged_at.load(std::memory_order_relaxed)}, n, now);
    }
    from.remove(mask);
    set_run(first, run);
    runs.run_spans += n;
    runs.clean_spans += n - dirty;
    return dirty == 0;
  }

  const SpanRange<A, Config>& range_;
  Spans& spans_;
  Chunks& chunks_;
  DueNote<A>& due_;
  ArenaGrowth<A, Config, Pages>& growth_;
  ArenaPurge<A, Config, Pages>& purge_;
  SpanSource<A, Config, Pages>& source_;
  RunWord* table_ = nullptr;
};

}  // namespace freehold::alloc
