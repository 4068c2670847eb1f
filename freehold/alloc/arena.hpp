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
//   arena_spans.hpp   address space, chunks, free spans     arena_runs.hpp    runs, and the spans that threads keep
//   arena_slots.hpp   slots, and spans that change classes  arena_purge.hpp   giving memory back
//
//   Invariants: span_class(s) == c  <=>  s belongs to pools[c]; it changes only while the thread that changes it holds every
//               slot of s (so no pointer into s is live and no drain can be under way).
//               run_pages(s) != 0  <=>  a run in use begins at s.
//               A span of a class whose slots are all free, at rest, is in the set of empties.
//               A span of a class in which slots became free since its pages were last looked at is in the set of drained.
//
// Locks: none to allocate, free or hand over spans. grow_lock_ serialises new chunks. purge_lock_ lets one thread at a time
// give memory back, in bounded steps; other threads pass by. Memory that is being purged belongs to the purging thread
// meanwhile. Errors: kNoSpan when address space, memory or the page source is exhausted; nothing is lost then. Source: spans
// and purge delay after tcmalloc and mimalloc; reclaiming by the free bits alone is docs/design.md's.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "freehold/alloc/arena_space.hpp"
#include "freehold/alloc/arena_types.hpp"
#include "freehold/alloc/budget.hpp"
#include "freehold/alloc/chunk_pool.hpp"
#include "freehold/alloc/due.hpp"
#include "freehold/alloc/live_figures.hpp"
#include "freehold/alloc/run_cache.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "freehold/alloc/span.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/slots/slot_groups.hpp"
#include "freehold/slots/summary_tree.hpp"
#include "freehold/slots/word_pool.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class Arena {
 public:
  using Classes = typename Config::Classes;
  using SpanType = Span<A>;
  using Word = typename A::template atomic<std::uint64_t>;
  using ClassByte = typename A::template atomic<std::uint8_t>;
  using HintWord = typename A::template atomic<std::uint32_t>;
  using BudgetType = Budget<A, Config>;
  static constexpr unsigned kSpanShift = Config::kSpanShift;
  static constexpr std::size_t kSpanBytes = std::size_t{1} << kSpanShift;
  static constexpr unsigned kChunkSpans = Config::kChunkSpans;
  static constexpr std::size_t kChunkBytes = kSpanBytes * kChunkSpans;
  static constexpr std::size_t kManyChunks = 64;  // of fewer that the process may map, each is dear
  static constexpr unsigned kPagesPerSpan = kSpanBytes / Config::kPageBytes;
  // A WordIndex numbers 2^26 spans.
  static constexpr std::size_t kMaxCapacityBytes = kSpanBytes << 26;

  // One bit for each slot of a span, set when free, in words. Classes whose spans need few have them in a table where these
  // lie side by side: of large slots a page has the words of 64 spans, not of 8, for a fork's child to copy and for what is
  // left of a spike. A span's words in the table of other classes than its own are 0.
  struct WordTable {
    Word* first = nullptr;
    std::uint32_t words_per_span = 0, skipped = 0;  // of the 64 that a WordIndex has for a span
    constexpr void set_size(std::uint32_t words) noexcept {
      words_per_span = words;
      skipped = 64 - words;
    }
    Word& operator[](pool::WordIndex index) const noexcept { return first[index - pool::span_of(index) * skipped]; }
  };
  // The storage that the word pools of the classes of one table share.
  struct Storage {
    Arena* arena;
    unsigned table;
    WordTable words{};
    Word& word(pool::WordIndex index) const noexcept { return words[index]; }
    Word& summary(SpanIndex span) const noexcept { return arena->spans_[span].summaries[table]; }
    auto& last_user(SpanIndex span) const noexcept { return arena->span_hints_[span].last_user; }
    bool belongs(SpanIndex span, unsigned tag) const noexcept { return arena->class_of_span(span).index() == tag; }
    // Slots smaller than a cache line: two threads that write to them in one line slow each other down for ever.
    bool is_left_to(pool::LastUser user, unsigned tag) const noexcept {
      return Classes::slot_bytes(SizeClass{tag}) < base::kCacheLine && !arena->ended_threads_.has(user.thread()) &&
             arena->budget_.may_scatter();
    }
    // More than may stay free: searches have the time to find it.
    bool is_much_free() const noexcept { return !arena->budget_.may_scatter(); }
    // Of no class: the claim that follows puts it into a tree.
    pool::SummaryTree<A>* tree_of(SpanIndex span) const noexcept {
      const SizeClass c = arena->class_of_span(span);
      return c.is_slot() ? &arena->pools_[c].tree() : nullptr;
    }
  };
  struct PoolConfig {
    using Storage = Arena::Storage;
    using Orders = typename Config::Orders;
  };
  using Pool = pool::WordPool<A, PoolConfig>;

  constexpr Arena() noexcept = default;

  // Finds a place in the address space. False: the page source refused; may be tried again. Not thread-safe.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings) noexcept;

  // CPUs work in chunks of their own, but never in more than twice as many as there were threads: one thread that wanders
  // over many CPUs stays with its chunks. At most kShards count. Externally serialised.
  void expect_threads(std::size_t n) noexcept {
    const std::size_t shards = n < 2 ? 1 : std::bit_ceil(2 * std::min(n, std::size_t{kShards}));
    if (shards - 1 > shard_mask_.load(std::memory_order_relaxed))
      shard_mask_.store(static_cast<unsigned>(std::min(shards, std::size_t{kShards}) - 1), std::memory_order_relaxed);
  }

  // The caller's CPU, as far as CPUs work apart. Relaxed: a hint.
  [[nodiscard]] unsigned shard_number() const noexcept {
    const unsigned mask = shard_mask_.load(std::memory_order_relaxed);
    return mask == 0 ? 0 : A::cpu_id() & mask;  // which is a system call on some machines
  }
  [[nodiscard]] EndedThreads<A>& ended_threads() noexcept { return ended_threads_; }

  // --- look-ups, any thread ------------------------------------------------------------------------------------------

  [[nodiscard]] Pool& pool(SizeClass c) noexcept { return pools_[c]; }
  [[nodiscard]] const pool::SlotGeometry& geometry(SizeClass c) const noexcept { return geometry_[c]; }
  [[nodiscard]] std::uintptr_t base() const noexcept { return base_; }
  // Spans that exist; an address beyond is not ours. Relaxed: a block's user was told its address after it grew.
  [[nodiscard]] std::size_t span_count() const noexcept { return span_count_.load(std::memory_order_relaxed); }
  [[nodiscard]] const ClassByte* span_classes() const noexcept { return span_class_; }
  [[nodiscard]] SpanType& span(SpanIndex i) noexcept { return spans_[i]; }
  [[nodiscard]] std::uintptr_t address(SpanIndex i) const noexcept { return base_ + (std::uintptr_t{i} << kSpanShift); }
  [[nodiscard]] const WordTable& words_of(SizeClass c) const noexcept { return storages_[table_of(c)].words; }
  // Acquire: pairs with kSetClass in claim().
  [[nodiscard]] SizeClass class_of_span(SpanIndex i) const noexcept {
    return SizeClass{span_class_[i].load(std::memory_order_acquire)};
  }
  // Pages of the run in use that begins at span i; 0: none does.
  [[nodiscard]] std::uint32_t run_pages(SpanIndex i) const noexcept { return run(i).pages; }
  // Spans of the run in use that begins at span i: those of its pages, and room to grow; 0: none does.
  [[nodiscard]] unsigned run_spans(SpanIndex i) const noexcept { return run(i).spans; }
  // Whether span i lies in a run in use. Searches the chunk: for reports of misuse.
  [[nodiscard]] bool is_in_used_run(SpanIndex i) const noexcept {
    for (SpanIndex first = i - i % kChunkSpans; first <= i; ++first)
      if (i - first < run_spans(first)) return true;
    return false;
  }

  // --- slots ---------------------------------------------------------------------------------------------------------

  // Gives class `c` a span, worked in by `thread_id`, and the caller `keep` of its slots (at most 64). bits == 0: no memory.
  [[nodiscard]] pool::Taken claim(SizeClass c, unsigned keep, std::uint32_t thread_id, std::uint64_t now) noexcept;

  // Takes up to `want` slots of class `c` of one word, where WordPool::find() finds some under these terms. bits == 0: none.
  [[nodiscard]] inline pool::Taken take_slots(SizeClass c, pool::Cursor& cursor, unsigned want, std::uint32_t thread_id,
                                              unsigned max_foreign_spans) noexcept;
  // The same where the cursor stands, in line: what most calls find. bits == 0: look further.
  [[nodiscard]] inline pool::Taken take_slots_at_home(SizeClass c, pool::Cursor& cursor, unsigned want,
                                                      std::uint32_t thread_id) noexcept;
  // Gives slots of class `c` back. Returns those of them that were free already; then nothing was changed.
  [[nodiscard]] inline std::uint64_t give_slots(SizeClass c, const pool::Taken& slots) noexcept;
  // The same for n <= kMaxBatch addresses; `last` becomes the word of the last one. Reports misuse. Returns how many of
  // them lie in spans that another thread than `thread_id` used last; 0 where nobody counts them.
  std::uint32_t give_slots(SizeClass c, void* const* slots, std::size_t n, pool::WordIndex& last,
                           std::uint32_t thread_id) noexcept;
  // Takes up to `most` free slots of a word that begin on the first of the pages [from, end) of span i of class c with any.
  [[nodiscard]] pool::Taken take_lowest(SpanIndex i, SizeClass c, std::size_t from, std::size_t end, unsigned most) noexcept;
  // Slots of a span were handed out: drops the hints about its pages.
  void note_taken(SpanIndex i) noexcept {
    if (spans_[i].page_hints.load(std::memory_order_relaxed) != 0) [[unlikely]]
      drop_hints(i, true);
  }
  // Reports what caches took from the pools (positive) or gave back since their last report, in bytes. Returns whether free
  // memory should go back now.
  [[nodiscard]] bool report_slots(std::int64_t bytes) noexcept {
    budget_.slots_taken(bytes);
    return bytes < 0 && budget_.excess() > slack();
  }

  // --- runs ----------------------------------------------------------------------------------------------------------

  // What a block above the largest class takes: pages, and spans that have room for them. In the table of runs.
  struct Run {
    std::uint16_t pages = 0, spans = 0;
    constexpr Run() noexcept = default;
    constexpr Run(std::uint32_t p) noexcept : Run(p, spans_of(p)) {}
    constexpr Run(std::uint32_t p, unsigned s) noexcept
        : pages(static_cast<std::uint16_t>(p)), spans(static_cast<std::uint16_t>(s)) {}
  };
  // A run of at most a chunk, at a multiple of `alignment` spans; kNoSpan when out of memory.
  [[nodiscard]] RunPlace allocate_run(Run run, unsigned alignment, std::uint64_t now) noexcept;
  // False, and nothing done: no run in use begins at `first`.
  [[nodiscard]] bool free_run(SpanIndex first, std::uint64_t now) noexcept;
  // Free spans that the caller keeps, of one chunk of runs.
  using Runs = RunCache<A, Config>;
  using Reserved = typename Runs::Reserved;
  // The same from spans that the caller keeps and that still have their pages; reports go into `runs`.
  [[nodiscard]] inline SpanIndex allocate_dirty(Runs& runs, Reserved& from, Run run, unsigned alignment) noexcept;
  // The same from any that the caller keeps.
  [[nodiscard]] RunPlace allocate_reserved(Runs& runs, Reserved& from, Run run, unsigned alignment,
                                           std::uint64_t now) noexcept;
  // A run of `n` spans of the caller's becomes spans that it keeps. Of two threads that free a run at the same time both may
  // come here; unreserve() finds it out.
  inline void free_reserved(Runs& runs, Reserved& to, SpanIndex first, unsigned n) noexcept;
  // Makes the run shorter, or longer with spans that the caller keeps behind it. False: not possible, nothing changed.
  [[nodiscard]] bool resize_reserved(Runs& runs, Reserved& from, SpanIndex first, std::uint32_t pages,
                                     std::uint64_t now) noexcept;
  // Before a run takes clean memory: wholly free spans of classes become free spans. Returns whether there were some.
  [[nodiscard]] bool reclaim_for_runs() noexcept;
  // Adds what else is free in the chunk. Returns whether there was something.
  bool reserve(Reserved& to) noexcept;
  // Whether a thread should keep the free spans around a run: not around a large one, of which a thread uses few; not where
  // chunks are dear; and not under a limit, which asks for each clean span.
  [[nodiscard]] bool is_worth_reserving(SpanIndex i) const noexcept;
  // Gives back what the caller keeps there. Returns the address of a run that was freed twice; null: none.
  [[nodiscard]] const void* unreserve(Reserved& from, std::uint64_t now) noexcept;
  // Reports changes. Returns whether free memory should go back now.
  [[nodiscard]] bool report(Runs& runs) noexcept;
  [[nodiscard]] static constexpr unsigned spans_of(std::uint32_t pages) noexcept {
    return (pages + kPagesPerSpan - 1) / kPagesPerSpan;
  }
  // Makes the run `pages` pages long where it is. False: not possible, nothing changed.
  [[nodiscard]] bool resize_run(SpanIndex first, std::uint32_t pages, std::uint64_t now) noexcept;

  // --- giving memory back --------------------------------------------------------------------------------------------

  // Whether memory waits to be given back, so that a look at the clock is worth while.
  [[nodiscard]] bool something_due() const noexcept { return something_due_.load(std::memory_order_relaxed); }
  // Gives back memory that has been free for the delay, in a bounded step. Call now and then from slow paths; `now` in
  // milliseconds. Returns whether it looked, and so may have cleared the note of due memory.
  bool tick(std::uint64_t now) noexcept {
    if (!is_tick_due(now) || !purge_lock_.try_lock()) return false;
    tick_locked(now);
    purge_lock_.unlock();
    return true;
  }
  // Relaxed: a lost race makes a tick early or late.
  [[nodiscard]] bool is_tick_due(std::uint64_t now) const noexcept {
    return now >= next_tick_.load(std::memory_order_relaxed);
  }
  // The same step at any time, for a thread that has nothing else to do. Waits for no lock.
  [[nodiscard]] Due purge_idle(std::uint64_t now) noexcept;
  // Something will be due.
  void note_due() noexcept {
    // seq_cst: the caller has just put something where purge_idle() finds it; either that looks after us, or we see that
    // its note was cleared.
    if (!something_due_.load(std::memory_order_seq_cst)) something_due_.store(true, std::memory_order_seq_cst);
  }
  // Gives back memory beyond the budget, in a step that is bounded by a constant and by what was freed just now. Returns
  // whether anything went back.
  bool relieve(std::uint64_t now, std::size_t freed = 0) noexcept;
  // Gives everything back that is wholly free, at page granularity, at once. Returns bytes. Frees do not wait meanwhile.
  std::size_t trim(std::uint64_t now) noexcept {
    std::size_t bytes = 0;
    while (trim_step(now, bytes)) continue;
    return bytes;
  }
  // A bounded part of that; adds to `bytes`. Returns whether there is more.
  [[nodiscard]] bool trim_step(std::uint64_t now, std::size_t& bytes) noexcept;
  // Whether `bytes` more may be in use under the limit, if need be after everything free has gone back.
  [[nodiscard]] bool admit(std::uint64_t bytes, std::uint64_t now) noexcept;
  void set_limit(std::uint64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool limit_was_met() const noexcept { return limit_was_met_.load(std::memory_order_relaxed); }
  [[nodiscard]] BudgetType& budget() noexcept { return budget_; }
  [[nodiscard]] std::uint64_t purge_delay_ms() const noexcept { return settings_.purge_delay_ms; }

  // In a fork's child, whose only thread holds none.
  void reset_locks() noexcept {
    grow_lock_.reset();
    purge_lock_.reset();
  }

  // --- for statistics and tests --------------------------------------------------------------------------------------

  [[nodiscard]] const ArenaCounters<A>& counters() const noexcept { return counters_; }
  // Calls f(figure, its atomic), or f(figure, the first, how many, bytes from one to the next).
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    budget_.for_each_live_figure(f);
    f(LiveFigure::kRunBytes, shards_[0].budget.runs, kShards, sizeof(Shard));
    f(LiveFigure::kFreeDirtyBytes, shards_[0].budget.dirty, kShards, sizeof(Shard));
    f(LiveFigure::kPurgedBytes, counters_.purged_bytes);
    f(LiveFigure::kPurgeCalls, counters_.purge_calls);
    f(LiveFigure::kSpanClaims, counters_.span_claims);
    f(LiveFigure::kSpanReturns, counters_.span_returns);
    f(LiveFigure::kLimitBytes, limit_);
    f(LiveFigure::kLockWaits, grow_lock_.waits().counter());
    f(LiveFigure::kLockWaits, purge_lock_.waits().counter());
  }
  // Where readers outside the process find the spans of the size classes.
  void add_live_classes(LiveClasses& to) const noexcept {
    static_assert(Classes::kCount <= kMostLiveClasses);
    const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
    to.span_count = address(&span_count_);
    to.span_classes = address(span_class_);
    for (const Storage& storage : storages_) {
      auto& [words, stride] = to.tables[&storage - storages_];
      words = address(storage.words.first);
      stride = storage.words.words_per_span * sizeof(Word);
    }
    to.few_words_from = kFewWordsFrom;
    to.span_bytes = kSpanBytes;
    to.count = Classes::kCount;
    for (const SizeClass c : AllClasses<Classes>{})
      to.slot_bytes[c.index()] = static_cast<std::uint32_t>(Classes::slot_bytes(c));
  }
  [[nodiscard]] std::uint64_t lock_waits() const noexcept {
    return grow_lock_.waits().count() + purge_lock_.waits().count();
  }
  // Free spans that may hold pages. Counts: one pass over the chunks.
  [[nodiscard]] std::uint64_t free_dirty_bytes() const noexcept;
  [[nodiscard]] std::uint64_t committed_bytes() noexcept {
    const sync::Guard guard(grow_lock_);
    return space_.memory_bytes();
  }
  [[nodiscard]] std::uint64_t metadata_bytes() noexcept {
    const sync::Guard guard(grow_lock_);
    return space_.table_bytes();
  }
  // Calls f(span, its size class or none) for every span that exists. The records of one that has a class can be read.
  template <class F>
  void for_each_span(F&& f) noexcept {
    const auto count = static_cast<SpanIndex>(span_count());
    for (SpanIndex i = 0; i < count; ++i)
      if (chunks_.chunk(i / kChunkSpans).kind.load(std::memory_order_relaxed) != ChunkKind::kNone) f(i, class_of_span(i));
  }
  // `kept`: whether a thread keeps the span as a free one.
  template <class IsKept>
  [[nodiscard]] bool check_invariants(IsKept kept) noexcept;
  [[nodiscard]] bool check_invariants() noexcept {
    return check_invariants([](SpanIndex) { return false; });
  }
  // Not reported by threads yet: bytes of slots that they took, spans that became free and dirty, runs in use; and spans
  // that they keep.
  struct Unreported {
    std::int64_t slot_bytes = 0, dirty_spans = 0, run_spans = 0, kept_dirty_spans = 0;
  };
  // Whether the budget's figures are what a count over the spans says. Call at rest.
  [[nodiscard]] bool check_accounts(const Unreported& unreported) noexcept;

 private:
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;
  using Chunks = ChunkPool<A, kChunkSpans, typename Config::ChunkOrders>;
  using Tree = pool::SummaryTree<A>;

  static constexpr std::uint64_t kMostDelayMs = std::uint64_t{1} << 30;  // twelve days: times wrap at 32 bits
  static constexpr std::int64_t kSlackBytes = 256 * 1024;                // over the budget before a step is worth while
  static constexpr unsigned kShards = Config::kShards;
  static_assert(std::has_single_bit(kShards));
  // A kind's first chunk is mapped in steps: memory that no block has had is no access to a small program.
  static constexpr unsigned kFirstSpans = kChunkSpans >= 64 ? kChunkSpans / 16 : kChunkSpans;
  static constexpr unsigned kMostStepSpans = std::min(16U, kChunkSpans);  // returned by one system call

  // What one CPU uses.
  struct alignas(base::kCacheLine) Shard {
    typename Chunks::Cursor slots{Chunks::kNoChunk}, runs{Chunks::kNoChunk};
    typename BudgetType::Shard budget;
    [[nodiscard]] typename Chunks::Cursor& cursor(ChunkKind kind) noexcept {
      return kind == ChunkKind::kSlots ? slots : runs;
    }
  };
  // Chunks [next, end) are set aside for a kind, so that kinds do not alternate in the address space: under huge pages each
  // change is a mapping of its own.
  struct Extent {
    std::uint32_t next = 0, end = 0, chunks = 0;
    std::uint32_t first = Chunks::kNoChunk;  // the kind's first chunk, of which `open` spans are mapped
    unsigned open = 0, most = kChunkSpans;
  };
  static constexpr Effort kStep{128, std::size_t{16} << 20};  // half a millisecond: 100 ns a page
  // A huge page, and the parts of a chunk that may be one each.
  static constexpr std::size_t kHugeBytes = std::min(std::size_t{2} << 20, kChunkBytes);
  static constexpr unsigned kHugeSpans = kHugeBytes >> kSpanShift;
  static constexpr unsigned kHugeParts = kChunkSpans / kHugeSpans;
  static_assert(kHugeParts <= 8, "a bit each of Chunk::huge");
  static constexpr std::uint32_t kMostBorders = 1024;  // between parts with and without huge pages: each may be a mapping
  // What may go back of a chunk's free spans.
  enum class Part : std::uint8_t { kWhole, kSmallPages, kAny };

  // An eighth: a line of a span, where the engine has eight.
  static constexpr unsigned kFewWords = std::max(Config::kWordsPerSpan / 8, 1U);
  static constexpr std::uint32_t kFewWordsFrom = kSpanBytes / (64 * kFewWords);  // bytes of a slot
  [[nodiscard]] static constexpr unsigned table_of(SizeClass c) noexcept {
    return Classes::slot_bytes(c) >= kFewWordsFrom ? 1 : 0;
  }
  // Where spans of class c come from.
  [[nodiscard]] static constexpr ChunkKind chunk_kind_of(SizeClass c) noexcept {
    return Classes::slot_bytes(c) <= Config::kSlotChunkMaxBytes ? ChunkKind::kSlots : ChunkKind::kRuns;
  }
  [[nodiscard]] static constexpr ChunkKind other(ChunkKind kind) noexcept {
    return kind == ChunkKind::kSlots ? ChunkKind::kRuns : ChunkKind::kSlots;
  }
  void lay_out_tables(std::size_t spans) noexcept;
  void attach_tables(std::size_t spans) noexcept;

  [[nodiscard]] TakenSpans take_spans(ChunkKind kind, unsigned n, unsigned alignment, bool reuse,
                                      std::uint64_t now) noexcept;
  [[nodiscard]] TakenSpans take_or_reuse(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard, bool reuse) noexcept;
  [[nodiscard]] TakenSpans take_or_grow(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard) noexcept;
  [[nodiscard]] TakenSpans take_anywhere(ChunkKind kind, unsigned n, unsigned alignment, Shard& shard,
                                         std::uint64_t now) noexcept;
  [[nodiscard]] bool grow(ChunkKind kind, unsigned n, unsigned cpu) noexcept;
  [[nodiscard]] std::uint32_t next_chunk(ChunkKind kind) noexcept;
  [[nodiscard]] bool map_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind) noexcept;
  [[nodiscard]] bool open_more(ChunkKind kind, unsigned n) noexcept;
  [[nodiscard]] bool is_open(SpanIndex i) const noexcept;
  void advise_spans(std::uint32_t chunk, unsigned from, unsigned end, ChunkKind kind, std::uint32_t chunks) noexcept;
  void ask_for_huge_page(const TakenSpans& t) noexcept;
  void set_huge(std::uint32_t chunk, unsigned part, bool wanted) noexcept;
  void split_huge_pages(std::uintptr_t at, std::size_t bytes) noexcept;
  void forbid_huge_pages(ChunkKind kind) noexcept;
  // Beyond the budget, before it is worth a step. A huge page that is partly in use is not split for a little: where there
  // are some, another quarter of what is in use may wait, up to one huge page, until its neighbours are free as well.
  [[nodiscard]] std::int64_t patience() const noexcept {
    constexpr std::int64_t kShare = 4;
    if (settings_.huge_pages == HugePages::kOff || huge_parts_.load(std::memory_order_relaxed) == 0) return 0;
    return std::clamp(budget_.in_use() / kShare, std::int64_t{0}, static_cast<std::int64_t>(kHugeBytes));
  }
  [[nodiscard]] std::int64_t slack() const noexcept { return kSlackBytes + patience(); }
  void give_spans(SpanIndex first, unsigned n, std::uint64_t now, bool just_now = true) noexcept;
  void give_untouched(const TakenSpans& t, unsigned n) noexcept;
  void account(std::int64_t dirty_spans, std::int64_t run_spans, std::uint64_t now) noexcept;
  [[nodiscard]] Run run(SpanIndex i) const noexcept {
    return std::bit_cast<Run>(run_pages_[i].load(std::memory_order_relaxed));  // relaxed: the block is the caller's
  }
  void set_run(SpanIndex i, Run run) noexcept {
    run_pages_[i].store(std::bit_cast<std::uint32_t>(run), std::memory_order_relaxed);  // the same
  }
  [[nodiscard]] std::optional<bool> use_reserved(Runs& runs, Reserved& from, std::uint64_t mask, unsigned n, SpanIndex first,
                                                 Run run, std::uint64_t now) noexcept;
  [[nodiscard]] bool may_use_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept;
  void regret_fresh(const TakenSpans& t, unsigned n, std::uint64_t now) noexcept;
  [[nodiscard]] SpanIndex span_for(SizeClass c, std::uint64_t now) noexcept;

  // A statistic of a hint, which decides nothing: the simulated machine leaves it out, and explores the rest further.
  // `mine`: as the last user of a span that the caller uses. A span of a class was always used by somebody.
  [[nodiscard]] static bool is_used_by_others(const SpanHints<A>& hints, pool::LastUser mine) noexcept {
    if constexpr (requires { Config::kCountsRemoteFrees; })
      return (hints.last_user.load(std::memory_order_relaxed) | 1) != mine.value;
    else
      return false;
  }
  // The class of a span that has just left a set of spans; 0: none.
  [[nodiscard]] SizeClass class_after_leaving(SpanIndex i) const noexcept {
    return SizeClass{span_class_[i].load(Config::SpanOrders::kAskClass)};
  }
  inline void put_back(pool::WordIndex index, std::uint64_t bits) noexcept;
  [[nodiscard]] inline std::uint64_t give_word(SizeClass c, pool::WordIndex index, std::uint64_t bits, std::uint64_t full,
                                               Word& word) noexcept;
  [[gnu::cold, gnu::noinline]] void report_twice(SizeClass c, pool::WordIndex index, std::uint64_t bits,
                                                 std::uint64_t twice) noexcept;
  inline void note_full(SizeClass c, pool::WordIndex index) noexcept;
  // One add for each look. seq_cst: ordered after the put of the slots, which those see who look after retire_drained().
  [[nodiscard]] static bool is_noted_as_drained(const SpanHints<A>& hints) noexcept {
    return hints.is_drained.load(std::memory_order_seq_cst) != 0;
  }
  [[gnu::noinline]] void add_drained(SpanIndex i) noexcept;
  void retire_drained(SpanIndex i) noexcept;
  void drop_hints(SpanIndex i, bool wanted) noexcept;
  [[nodiscard]] SpanIndex reclaim_empty_span(SpanIndex from) noexcept;
  [[nodiscard]] bool leave_empties(SpanIndex i) noexcept;
  [[nodiscard]] bool reclaim_span(SpanIndex i, SizeClass c) noexcept;
  void tick_locked(std::uint64_t now) noexcept;
  [[nodiscard]] Due purge_idle_locked(std::uint64_t now) noexcept;
  [[nodiscard]] bool is_much_scattered() noexcept;
  [[nodiscard]] bool look_at_empties(std::uint64_t now, Effort& effort) noexcept;
  [[nodiscard]] bool look_at_drained(std::uint64_t now, Effort& effort) noexcept;
  [[nodiscard]] bool purge_due(std::uint64_t now, Effort& effort) noexcept;
  [[nodiscard]] bool purge_something(std::uint64_t now, Effort& effort, bool split = true) noexcept;
  [[nodiscard]] std::uint64_t dirty_spans(std::uint32_t chunk, Part part) noexcept;
  [[nodiscard]] std::uint32_t oldest_dirty_chunk(Part part) noexcept;
  [[nodiscard]] bool purge_chunk(std::uint32_t chunk, Part part, std::uint64_t now, Effort& effort) noexcept;
  void note_records_of(std::uint32_t chunk, std::uint64_t now) noexcept;
  [[nodiscard]] bool purge_waiting_records(std::uint64_t now, std::uint64_t age) noexcept;
  void purge_records_of(std::uint32_t chunk, std::uint64_t now) noexcept;
  [[nodiscard]] bool purge_pages_of(SpanIndex i, SizeClass c, std::uint64_t now, Effort& effort) noexcept;
  [[nodiscard]] std::uint32_t free_pages_of(SpanIndex i, SizeClass c) noexcept;
  [[nodiscard]] bool purge_pages(SpanIndex i, SizeClass c, unsigned page, unsigned end, Effort& effort) noexcept;
  [[nodiscard]] bool purge_range(std::uintptr_t at, std::size_t bytes, Effort& effort) noexcept;

  // Read by every allocation and free; all but span_count_ written by init() only.
  std::uintptr_t base_ = 0;
  typename A::template atomic<std::size_t> span_count_{0};
  ClassByte* span_class_ = nullptr;
  SpanHints<A>* span_hints_ = nullptr;
  HintWord* run_pages_ = nullptr;  // a Run each
  SpanType* spans_ = nullptr;
  Pages* pages_ = nullptr;
  Storage storages_[2] = {{this, 0}, {this, 1}};
  PerClass<Pool, Classes::kCount> pools_;
  PerClass<pool::SlotGeometry, Classes::kCount> geometry_;
  ArenaSettings settings_;
  Chunks chunks_;
  Tree empties_;  // spans that looked wholly free
  Tree drained_;  // spans in which slots became free since their pages were looked at

  Shard shards_[kShards];
  BudgetType budget_;
  ArenaCounters<A> counters_;

  // Hints and clocks, any thread.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> next_tick_{0};
  typename A::template atomic<std::uint64_t> limit_{0};
  typename A::template atomic<std::uint64_t> swept_at_{0};  // milliseconds, when pages inside spans went back last
  typename A::template atomic<bool> something_due_{false};
  typename A::template atomic<bool> runs_forbidden_{false};     // to have huge pages
  typename A::template atomic<std::int32_t> huge_parts_{0};     // that huge pages are asked for under
  typename A::template atomic<std::uint32_t> huge_borders_{0};  // at most, between parts with and without
  typename A::template atomic<bool> limit_was_met_{false};
  typename A::template atomic<bool> chunks_are_dear_{false};  // locked memory, or few addresses
  typename A::template atomic<unsigned> shard_mask_{0};       // the shards in use, less one

  // Under purge_lock_.
  alignas(base::kCacheLine) Lock purge_lock_;
  std::uint32_t purge_cursor_ = 0;
  SpanIndex empties_cursor_ = 0, drained_cursor_ = 0;
  std::uint64_t next_drained_look_ = 0;               // milliseconds
  static constexpr unsigned kWaitingRecords = 32;     // 1.1 MiB
  std::uint32_t waiting_records_[kWaitingRecords]{};  // chunks, plus one
  unsigned next_waiting_ = 0;

  // Under grow_lock_.
  alignas(base::kCacheLine) Lock grow_lock_;
  ArenaSpace<Config, Pages> space_;
  Extent extents_[3]{};           // by ChunkKind
  std::uint32_t chunks_end_ = 0;  // chunks that belong to an extent
  std::uint32_t max_chunks_ = 0;
  unsigned table_numbers_[8]{};
  alignas(base::kCacheLine) EndedThreads<A> ended_threads_;
};

}  // namespace freehold::alloc

#include "freehold/alloc/arena_check.hpp"
#include "freehold/alloc/arena_purge.hpp"
#include "freehold/alloc/arena_runs.hpp"
#include "freehold/alloc/arena_slots.hpp"
#include "freehold/alloc/arena_spans.hpp"
