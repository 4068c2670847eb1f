// SPDX-License-Identifier: MIT
// The engine's core: what stands behind the fast paths (fast_path.hpp). Thread caches stand before it, an array of word
// pools over one arena behind it. The process's one Core is in engine.cpp; docs/architecture.md tells the life of a malloc
// in numbered steps.
//
// It owns these parts, wires them to each other, and knows when caches come and go:
//
//   arena.hpp           spans, slots and runs                cache_registry.hpp  all threads' caches
//   direct_blocks.hpp   blocks with a mapping each           cache_arrays.hpp    their arrays, and budget
//   block_map.hpp       which block an address lies in       kept_runs.hpp       free spans that threads keep
//   large_blocks.hpp    blocks above the largest class       kept_memory.hpp          what is kept goes back
//   refill.hpp          malloc's slow path                   drain.hpp           free's slow path
//   slot_returns.hpp    what a cache gives back, and when    moving.hpp          which blocks are worth moving
//
// core_stats.hpp has the figures and checks.
//
// Locks: those of its parts, in the order in which large_blocks.hpp names them. A template over Atomics, Config and
// PageSource: the model tests and the fault tests run this code, not a copy.
#pragma once
#include "freehold/alloc/front/cache_arrays.hpp"
#include "freehold/alloc/front/cache_registry.hpp"
#include "freehold/alloc/front/drain.hpp"
#include "freehold/alloc/front/refill.hpp"
#include "freehold/alloc/front/slot_returns.hpp"
#include "freehold/alloc/large/direct_blocks.hpp"
#include "freehold/alloc/large/kept_runs.hpp"
#include "freehold/alloc/large/large_blocks.hpp"
#include "freehold/alloc/observe/moving.hpp"
#include "freehold/alloc/observe/stats.hpp"
#include "freehold/alloc/return/kept_memory.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/alloc/spans/block_map.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/sync/fork_gate.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Core {
 public:
  using Classes = typename Config::Classes;
  using Cache = ThreadCache<A, Config>;
  using Gate = sync::ForkGate<A>;
  using ArenaType = Arena<A, Config, Pages>;
  using Registry = CacheRegistry<A, Config, Pages>;
  using Blocks = BlockMap<A, Config, Pages>;
  using Arrays = CacheArrays<A, Config, Pages>;
  using Kept = KeptRuns<A, Config, Pages, Clock>;
  using ReliefType = Relief<A, Config, Pages, Clock>;
  using Large = LargeBlocks<A, Config, Pages, Clock>;
  using Runs = typename Kept::Runs;
  using Reserved = typename Kept::Reserved;

  constexpr Core() noexcept = default;

  // Not thread-safe; false if the page source refused. `budget_bytes`: what caches may hold beyond kThreadBytes each.
  // `cpus`: how many threads can run at once. `gate`: where callers enter, if other threads' caches are to be emptied.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings, std::size_t budget_bytes, unsigned cpus,
                          const Gate* gate = nullptr) noexcept {
    refill_.init(cpus);
    kept_.init(cpus, gate);
    registry_.attach(pages);
    arrays_.init(budget_bytes);
    direct_.attach(pages, arena_.budget(), settings.huge_pages != HugePages::kOff);
    return arena_.init(pages, settings);
  }

  // --- its parts -----------------------------------------------------------------------------------------------------

  [[nodiscard]] ArenaType& arena() noexcept { return arena_; }
  [[nodiscard]] Registry& registry() noexcept { return registry_; }
  [[nodiscard]] Arrays& arrays() noexcept { return arrays_; }
  [[nodiscard]] const Blocks& blocks() const noexcept { return blocks_; }
  [[nodiscard]] Kept& kept() noexcept { return kept_; }
  [[nodiscard]] ReliefType& relief() noexcept { return relief_; }
  [[nodiscard]] Large& large() noexcept { return large_; }
  [[nodiscard]] auto& moving() noexcept { return moving_; }
  [[nodiscard]] bool keeps_mappings() const noexcept { return direct_.keeps_some(); }

  // --- caches --------------------------------------------------------------------------------------------------------

  // A cache for the calling thread; null if there is no memory for one.
  [[nodiscard]] Cache* attach() noexcept { return registry_.add(); }
  // Gives back everything the cache holds, and the cache.
  void detach(Cache* cache) noexcept {
    // The cache stays inside: a fork's child must leave alone a cache that is half taken apart, and the record is given back
    // below.
    cache->inside.store(1, std::memory_order_relaxed);
    kept_.end_runs(*cache);
    if constexpr (requires { Config::note_detached(cache); }) Config::note_detached(cache);
    for (const SizeClass c : AllClasses<Classes>{}) {
      returns_.empty_bin(*cache, c);
      arena_.pool(c).clear_active(cache->bins[c].cursor, cache->id);
    }
    returns_.report_now(*cache);
    arrays_.take_back(*cache);
    registry_.remove(cache);
  }
  // Detaches every cache of which is_gone(cache): its thread has ended and cannot do it.
  template <class IsGone>
  void detach_all(IsGone is_gone) noexcept {
    constexpr unsigned kAtOnce = 16;
    Cache* gone[kAtOnce];
    for (unsigned n = kAtOnce; n == kAtOnce;) {
      n = registry_.find(is_gone, gone, kAtOnce);
      for (unsigned i = 0; i < n; ++i) detach(gone[i]);
    }
  }

  // A slot of class c when pop() found none. Null: out of memory.
  [[nodiscard]] void* refill(Cache& cache, SizeClass c) noexcept { return refill_.slot(cache, c); }
  // Takes a slot of class c that push() had no room for.
  void drain(Cache& cache, SizeClass c, void* slot) noexcept { drain_.slot(cache, c, slot); }
  // See Drain::make_room().
  void make_room(Cache& cache, SizeClass c) noexcept { drain_.make_room(cache, c); }
  // Up to n <= 64 slots of one word, at least one unless out of memory, for a cache that is not a thread's; `cpu` keeps CPUs
  // apart as thread ids keep threads apart. Any thread.
  [[nodiscard]] std::size_t take_batch(SizeClass c, void** slots, std::size_t n, unsigned cpu) noexcept {
    return refill_.take_batch(c, slots, n, registry_.id_of_cpu(cpu));
  }
  // Gives n <= kMaxBatch slots back. Any thread.
  void give_batch(SizeClass c, void* const* slots, std::size_t n) noexcept { drain_.give_batch(c, slots, n); }
  // For threads that have no cache (yet, or any more): one slot, straight from and to the bitmap. Any thread.
  [[nodiscard]] void* allocate_uncached(SizeClass c) noexcept {
    void* slot;
    return take_batch(c, &slot, 1, 0) == 1 ? slot : nullptr;
  }
  void free_uncached(SizeClass c, void* slot) noexcept {
    give_batch(c, &slot, 1);
    late_frees_.fetch_add(1, std::memory_order_relaxed);
  }
  // Empties the cache's bins into the pools.
  void flush(Cache& cache) noexcept {
    for (const SizeClass c : AllClasses<Classes>{}) returns_.empty_bin(cache, c);
    if (Runs* const runs = kept_.own_runs(cache); runs != nullptr) (void)kept_.empty_runs(*runs);
  }

  // Frees anything that is not a slot: null, a run, a direct block; anything else is misuse. `cache`: the caller's own, or
  // null.
  void free_large(Cache* cache, void* block) noexcept {
    if (block == nullptr) return;
    const SpanIndex i = blocks_.run_at(reinterpret_cast<std::uintptr_t>(block));
    if (cache == nullptr || i == kNoSpan || !free_kept(*cache, i)) large_.free_large(block, i);
  }
  // The common case of it: a run, into what the thread keeps, without a look at what others write. False: nothing done.
  // `first`: the span that the block begins with.
  [[nodiscard, gnu::always_inline]] bool free_kept(Cache& cache, SpanIndex first) noexcept {
    Runs* const runs = kept_.own_runs(cache);
    const unsigned spans = arena_.runs().run_spans(first);
    if (runs == nullptr || spans == 0) return false;
    Reserved* const to = runs->find(first / ArenaType::kChunkSpans);
    if (to == nullptr) return false;
    arena_.runs().free_reserved(*runs, *to, first, spans);
    kept_.note_runs_used(cache);
    count_free_kept(cache, *runs);
    return true;
  }
  // The same for the direct block that the thread allocated last.
  [[nodiscard, gnu::always_inline]] bool free_mapped(Cache& cache, const void* block) noexcept {
    Runs* const runs = kept_.own_runs(cache);
    if (runs == nullptr || !kept_.free_mapped(cache, *runs, block)) return false;
    kept_.note_runs_used(cache);
    count_free_kept(cache, *runs);
    return true;
  }
  // Looks at the slots in caches for pointers that are no slots, and slots that are free already, and reports them.
  // `stamp_of`: a number that changes when a thread runs, by its system's id; 0: it runs now, and its cache is left out.
  // `room`: for `most` slots; those beyond are left out. `mine`: the caller's own.
  template <class StampOf>
  void report_misuse_in_caches(const Cache* mine, void** room, std::size_t most, StampOf&& stamp_of) noexcept;

  // --- figures, fork, checks -----------------------------------------------------------------------------------------

  void stats(Stats& out) noexcept;
  // See Arena::for_each_live_figure(). Takes no lock, reads none of them.
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    arena_.for_each_live_figure(f);
    direct_.for_each_live_figure(f);
    registry_.for_each_live_figure(f);
    arrays_.for_each_live_figure(f);
    f(LiveFigure::kLateFrees, late_frees_);
    f(LiveFigure::kLockWaits, large_.admission().waits().counter());
  }
  // Tells readers outside the process where the counters of threads and size classes are.
  [[nodiscard]] LiveTables live_tables() const noexcept {
    LiveTables tables{.bytes = sizeof(LiveTables), .unused = 0, .threads = {}, .classes = {}};
    registry_.add_live_tables(tables);
    arena_.add_live_classes(tables.classes);
    return tables;
  }
  // In a fork's child no thread is inside the engine; a lock may have been held by a thread that only read. The child
  // forgets the caches of threads that it does not have.
  void after_fork_in_child(Cache* mine) noexcept {
    registry_.reset();
    large_.admission().reset();
    direct_.lock().reset();
    arena_.reset_locks();
    adopt_orphans(mine);
  }
  // The invariants of caches, budget and arena; call at rest.
  [[nodiscard]] bool check_invariants() noexcept;
  // True if the budget's figures are what a recount says; call at rest, unless misuse was seen.
  [[nodiscard]] bool check_accounts() noexcept;

 private:
  using Returns = SlotReturns<A, Config, Pages, Clock>;
  static constexpr unsigned kRunsPerTick = 8;  // while something is due

  // In a fork's child: other threads' caches have no owner any more. What they hold is free memory, unless the owner was
  // inside; then it is left alone, at most the cache's allowance.
  void adopt_orphans(Cache* mine) noexcept {
    for (Cache* cache = registry_.first(); cache != nullptr;) {
      Cache* const next = cache->next;
      if (cache != mine && Gate::is_quiet(cache->inside)) detach(cache);
      cache = next;
    }
  }
  [[nodiscard]] bool is_kept(SpanIndex i) noexcept;
  [[nodiscard]] bool check_bin(const Cache& cache, SizeClass c) noexcept;
  // The clock is not for each of them.
  [[gnu::always_inline]] void count_free_kept(Cache& cache, Runs& runs) noexcept {
    ++cache.slow_calls;
    if (runs.run_spans < -Kept::kReportSpans || cache.slow_calls % kRunsPerTick == 0) [[unlikely]]
      after_free_kept(cache, runs);
  }
  // Does what is due now and then.
  [[gnu::noinline]] void after_free_kept(Cache& cache, Runs& runs) noexcept {
    const bool many = runs.run_spans < -Kept::kReportSpans || runs.run_spans > Kept::kReportSpans;
    if (cache.slow_calls % Returns::kSlowCallsPerTick != 0 && !many && !arena_.due().something()) return;
    const base::KeepErrno keep;
    if (many && arena_.runs().report(runs))
      relief_.relieve(&runs, static_cast<std::size_t>(Kept::kReportSpans) << ArenaType::kSpanShift);
    if (cache.slow_calls % kRunsPerTick == 0) returns_.tick(cache);
  }

  ArenaType arena_;
  Blocks blocks_{arena_, direct_};
  Large large_{arena_, direct_, blocks_, kept_, relief_};
  Registry registry_{arena_.free_spans(), arena_.slots().thread_ids()};
  DirectBlocks<A, Config, Pages> direct_;

  Arrays arrays_{registry_};
  Kept kept_{arena_, registry_, direct_};
  ReliefType relief_{arena_, direct_, registry_, kept_};
  Returns returns_{arena_, arrays_, kept_, relief_};
  Refill<A, Config, Pages, Clock> refill_{arena_, direct_, registry_, kept_, arrays_, returns_};
  Drain<A, Config, Pages, Clock> drain_{arena_, blocks_, arrays_, relief_, returns_};
  Moving<A, Config, Pages, Clock> moving_{arena_, blocks_, arrays_, returns_};
  typename A::template atomic<std::uint64_t> late_frees_{0};
};

}  // namespace freehold::alloc

#include "freehold/alloc/observe/core_stats.hpp"
