// The arena: one range of address space, cut into spans of 64 KiB, in two halves of equal size.
// The dense half holds the spans of classes up to 2 KiB, packed from the bottom, so that transparent huge pages pay; the
// run half holds single spans of larger classes and runs of spans (blocks above 32 KiB). A span belongs to a size class
// (owner byte != 0), to a run, or is free; a wholly free span of a class is *seized* (all its slots are taken out of the
// word pool) and may then be given to any class, be purged, or join a run.
//
// Life of a span: frontier -> claim -> slots or run -> free and dirty -> (after a delay) purged, clean -> claim …
//
//   Invariants: owner(s) == c  <=>  s is in state kSlots and belongs to pools[c]; owner changes only while the changer
//               holds every slot of s (so no pointer into s is live and no drain can be under way).
//               dirty + clean free spans + spans in use == frontier, in each half.
//               A span of a class whose slots are all free, at rest, is in the set of empties.
//
// Lock: everything but note_full(), give_back() and the word pools themselves runs under one mutex; it is taken once per
// 64 KiB of new memory and per block above 32 KiB. System calls that return memory are made under it, in bounded steps.
// Errors: kNoSpan when address space, memory or the page source is exhausted; nothing is lost then.
// Source: spans and purge delay after tcmalloc and mimalloc; seizing by the free bits alone is docs/design.md's.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/run_table.hpp"
#include "freehold/alloc/span.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/pool/slot_groups.hpp"
#include "freehold/pool/summary_tree.hpp"
#include "freehold/pool/word_pool.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

enum class HugePages : std::uint8_t { kOff, kAuto, kOn };

struct ArenaSettings {
  std::size_t half_bytes = 0;  // address space of each half; a power of two
  bool in_steps = false;       // reserve as it grows, for a limited address space
  unsigned lanes = 8;          // of the word pools' trees: a power of two, about four a CPU
  std::uint64_t purge_delay_ms = 500;
  HugePages huge_pages = HugePages::kAuto;
};

// What the arena did since its start; under its lock.
struct ArenaCounters {
  std::uint64_t purged_bytes = 0;
  std::uint64_t purge_calls = 0;
  std::uint64_t span_claims = 0;
  std::uint64_t span_returns = 0;
  std::uint64_t partly_purged_bytes = 0;  // in spans that are partly in use, estimated
};

template <sync::Atomics A, class Config, os::PageSource Pages>
class Arena {
 public:
  using Classes = typename Config::Classes;
  using SpanType = Span<A, Config::kWordsPerSpan>;
  using Word = typename A::template atomic<std::uint64_t>;
  using Owner = typename A::template atomic<std::uint8_t>;
  using HolderWord = typename A::template atomic<std::uint32_t>;
  static constexpr unsigned kSpanShift = Config::kSpanShift;
  static constexpr std::size_t kSpanBytes = std::size_t{1} << kSpanShift;
  // A Leaf numbers 2^26 spans; 4 TiB together.
  static constexpr std::size_t kMaxHalfBytes = kSpanBytes << 25;

  // The storage that the word pools of all classes share.
  struct Blocks {
    Arena* arena;
    Word& word(pool::Leaf leaf) const noexcept { return arena->spans_[pool::block_of(leaf)].words[pool::word_of(leaf)]; }
    Word& summary(std::uint32_t block) const noexcept { return arena->spans_[block].summary; }
    auto& holder(std::uint32_t block) const noexcept { return arena->holders_[block]; }
    // Acquire: pairs with the release store in claim(); whoever took a slot of a re-given span sees the new owner.
    bool belongs(std::uint32_t block, unsigned tag) const noexcept {
      return arena->owner_[block].load(std::memory_order_acquire) == tag;
    }
    void give_back(pool::Leaf leaf, std::uint64_t bits) const noexcept { arena->give_back(leaf, bits); }
    void enlist(std::uint32_t block) const noexcept {
      // Acquire: as in belongs(). Of no class: the claim that follows enlists it.
      if (const unsigned c = arena->owner_[block].load(std::memory_order_acquire); c != 0) arena->pools_[c].enlist(block);
    }
  };
  struct PoolConfig {
    using Blocks = Arena::Blocks;
    using Orders = typename Config::Orders;
  };
  using Pool = pool::WordPool<A, PoolConfig>;

  constexpr Arena() noexcept = default;

  // Reserves address space and lays out the tables. False: the page source refused; may be tried again. Not thread-safe.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings) noexcept;

  // --- lock-free -----------------------------------------------------------------------------------------------------

  [[nodiscard]] Pool& pool(unsigned c) noexcept { return pools_[c]; }
  [[nodiscard]] const pool::SlotGeometry& geometry(unsigned c) const noexcept { return geometry_[c]; }
  [[nodiscard]] std::uintptr_t base() const noexcept { return base_; }
  // Spans in address range of the arena; anything beyond is not ours.
  [[nodiscard]] std::size_t span_count() const noexcept { return span_count_; }
  [[nodiscard]] const Owner* owners() const noexcept { return owner_; }
  [[nodiscard]] SpanType& span(SpanIndex i) noexcept { return spans_[i]; }
  [[nodiscard]] std::uintptr_t address(SpanIndex i) const noexcept { return base_ + (std::uintptr_t{i} << kSpanShift); }

  [[nodiscard]] const Word* word_address(pool::Leaf leaf) const noexcept {
    return &spans_[pool::block_of(leaf)].words[pool::word_of(leaf)];
  }
  // Whether a run in use begins at span i. The caller holds the lock.
  [[nodiscard]] bool is_used_run(SpanIndex i) const noexcept { return was_used(i) && spans_[i].state == SpanState::kRun; }
  // Whether span i was handed out at least once. The caller holds the lock.
  [[nodiscard]] bool was_used(SpanIndex i) const noexcept {
    return i < run_.begin ? i < dense_.frontier : i < run_.frontier;
  }
  // Whether span i lies in a run in use. Walks the runs: for reports of crimes. The caller holds the lock.
  [[nodiscard]] bool is_in_used_run(SpanIndex i) const noexcept {
    for (SpanIndex run = run_.begin; run <= i && run < run_.frontier; run += length_at(run))
      if (spans_[run].state == SpanState::kRun && i - run < spans_[run].length) return true;
    return false;
  }

  // Puts slots back that were taken for a moment: from a span of an unexpected class, or to purge their pages. Whoever
  // freed the span's other slots meanwhile did not find it full, so it is for us to tell.
  void give_back(pool::Leaf leaf, std::uint64_t bits) noexcept {
    const unsigned c = owner_[pool::block_of(leaf)].load(std::memory_order_acquire);
    const std::uint64_t old = pools_[c].put(leaf, bits);
    if ((old | bits) == pools_[c].shape().full(pool::word_of(leaf))) note_full(c, leaf);
  }

  // Tells that `leaf` became full: its span may be wholly free. One bit set, once per span that empties.
  void note_full(unsigned c, pool::Leaf leaf) noexcept {
    const SpanIndex block = pool::block_of(leaf);
    if (!empties_.test(block) && pools_[c].looks_full(block, pool::word_of(leaf))) {
      empties_.set(block);
      note_due();
    }
  }

  // Whether memory waits to be given back, so that a look at the clock is worth while.
  [[nodiscard]] bool something_due() const noexcept { return something_due_.load(std::memory_order_relaxed); }

  // Tells that slots of `leaf` were handed out: what was known of its span's pages no longer holds.
  void note_taken(pool::Leaf leaf) noexcept {
    auto& hints = spans_[pool::block_of(leaf)].page_hints;
    if (hints.load(std::memory_order_relaxed) != 0) [[unlikely]]
      hints.store(0, std::memory_order_relaxed);
  }

  // Tells that about `bytes` of slots were given back since the last call; batched by the caller.
  void note_freed(std::uint64_t bytes) noexcept { freed_since_scan_.fetch_add(bytes, std::memory_order_relaxed); }

  // --- under the lock ------------------------------------------------------------------------------------------------

  using Lock = sync::Mutex<A, sync::CountWaits<A>>;
  [[nodiscard]] Lock& lock() noexcept { return lock_; }

  // Gives class `c` a span, held by `who`, and the caller `keep` of its slots (at most 64). bits == 0: out of memory.
  [[nodiscard]] pool::Taken claim(unsigned c, unsigned keep, std::uint32_t who, std::uint64_t now) noexcept;

  // A run of `length` spans at a multiple of `alignment` spans; kNoSpan when out of memory.
  [[nodiscard]] RunPlace allocate_run(SpanIndex length, SpanIndex alignment, std::uint64_t now) noexcept;
  void free_run(SpanIndex first, std::uint64_t now) noexcept;
  // Makes the run `length` spans long without moving it. False: not possible, nothing changed.
  [[nodiscard]] bool resize_run(SpanIndex first, SpanIndex length, std::uint64_t now, bool& zero) noexcept;

  // Does what is due: takes back wholly free spans, returns what has been free for the delay. Cheap when nothing is due.
  // Call now and then from slow paths; `now` in milliseconds.
  void tick(std::uint64_t now) noexcept {
    // Relaxed: a lost race makes a tick early or late.
    if (now < next_tick_.load(std::memory_order_relaxed) || !lock_.try_lock()) return;
    next_tick_.store(now + std::max<std::uint64_t>(settings_.purge_delay_ms / 4, 10), std::memory_order_relaxed);
    purge(now, false);
    lock_.unlock();
  }
  // Gives everything back that is wholly free, at page granularity, at once. Returns bytes. Takes the lock.
  std::size_t trim(std::uint64_t now) noexcept {
    const sync::Guard guard(lock_);
    const std::uint64_t before = counters_.purged_bytes;
    purge(now, true);
    return counters_.purged_bytes - before;
  }

  // For stats; the caller holds the lock.
  [[nodiscard]] const ArenaCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::uint64_t free_dirty_bytes() const noexcept {
    return (dirty_dense_ + runs_.dirty_spans()) << kSpanShift;
  }
  [[nodiscard]] std::uint64_t committed_bytes() const noexcept {
    return (std::uint64_t{dense_.committed - dense_.begin} + (run_.committed - run_.begin)) << kSpanShift;
  }
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept {
    return (std::uint64_t{dense_.reserved - dense_.begin} + (run_.reserved - run_.begin)) << kSpanShift;
  }
  [[nodiscard]] std::uint64_t metadata_bytes() const noexcept {
    return (std::uint64_t{dense_.frontier - dense_.begin} + (run_.frontier - run_.begin)) * sizeof(SpanType);
  }
  template <class F>
  void for_each_span(F&& f) noexcept {
    for (const Half* half : {&dense_, &run_})
      for (SpanIndex i = half->begin; i < half->frontier; ++i) f(i, owner_[i].load(std::memory_order_relaxed), spans_[i]);
  }

  [[nodiscard]] bool check_invariants() noexcept;

 private:
  // One half: spans [begin, end) of address space, [begin, frontier) were handed out at least once.
  struct Half {
    SpanIndex begin = 0, frontier = 0, committed = 0, reserved = 0, end = 0;
  };

  // Spans of the run half that belong together, from the first of them on.
  [[nodiscard]] SpanIndex length_at(SpanIndex i) const noexcept {
    return spans_[i].state == SpanState::kSlots ? 1 : spans_[i].length;
  }
  static constexpr bool is_dense(unsigned c) noexcept { return Classes::slot_bytes(c) <= Config::kDenseMaxBytes; }

  [[nodiscard]] void* reserve_first_steps(std::size_t step_bytes) noexcept;
  [[nodiscard]] SpanIndex span_for(unsigned c, std::uint64_t now) noexcept;
  [[nodiscard]] SpanIndex advance_frontier(Half& half, SpanIndex length) noexcept;
  [[nodiscard]] bool give_up_tail(Half& half) noexcept;
  [[nodiscard]] bool ensure_committed(Half& half, SpanIndex until) noexcept;
  [[nodiscard]] SpanIndex seize_empty(const Half& half, SpanIndex from, bool only_idle) noexcept;
  void note_due() noexcept {
    if (!something_due()) something_due_.store(true, std::memory_order_relaxed);
  }
  void release_empties(const Half& half, std::uint64_t now, bool only_idle) noexcept;
  void release_span(SpanIndex i, std::uint64_t now) noexcept;
  void purge(std::uint64_t now, bool everything) noexcept;
  void purge_run(SpanIndex first, std::uint64_t now) noexcept;
  void purge_partly_free(unsigned spared, bool only_idle) noexcept;
  void purge_pages_of(SpanIndex i, unsigned c, bool only_idle) noexcept;
  [[nodiscard]] bool purge_range(SpanIndex first, SpanIndex length) noexcept;
  void consider_scan(unsigned growing) noexcept;
  [[nodiscard]] bool check_span_of_class(SpanIndex i) noexcept;
  [[nodiscard]] std::uint64_t used_bytes() const noexcept {
    const std::uint64_t spans = std::uint64_t{dense_.frontier - dense_.begin} + (run_.frontier - run_.begin);
    return (spans - clean_dense_ - runs_.clean_spans()) << kSpanShift;
  }

  // Read by every allocation and free; written by init() only.
  std::uintptr_t base_ = 0;
  std::size_t span_count_ = 0;
  Owner* owner_ = nullptr;
  HolderWord* holders_ = nullptr;  // apart from the spans: a search reads many, and they seldom change
  SpanType* spans_ = nullptr;
  Pages* pages_ = nullptr;
  Blocks blocks_{this};
  Pool pools_[Classes::kCount];
  pool::SlotGeometry geometry_[Classes::kCount];
  ArenaSettings settings_;

  // Any thread.
  alignas(base::kCacheLine) pool::SummaryTree<A> empties_;  // spans that looked wholly free
  typename A::template atomic<std::uint64_t> freed_since_scan_{0};
  typename A::template atomic<std::uint64_t> next_tick_{0};
  typename A::template atomic<bool> something_due_{false};

  // Under the lock.
  alignas(base::kCacheLine) Lock lock_;
  Half dense_, run_;
  pool::SummaryTree<A> dirty_free_, clean_free_;  // free spans of the dense half
  SpanIndex dirty_dense_ = 0, clean_dense_ = 0;   // their numbers
  RunTable<SpanType> runs_;
  ArenaCounters counters_;
  std::uint64_t grown_since_scan_ = 0;  // spans that began to hold pages since the last look for free pages
  std::uint64_t next_idle_scan_ = 0;    // milliseconds
};

}  // namespace freehold::alloc

#include "freehold/alloc/arena_impl.hpp"
