// SPDX-License-Identifier: MIT
// The engine's core: the slow paths of malloc and free. Thread caches stand before it, an array of word pools over one arena
// behind it. The fast paths are in fast_path.hpp, the process's one Core in engine.cpp; docs/design.md tells the life of a
// malloc in numbered steps.
//
//   core_slots.hpp   refill and drain, with their call trees     core_large.hpp   blocks above the largest class
//   core_caches.hpp  threads' caches and their arrays            core_stats.hpp   figures and checks
//   core_look.hpp    which block an address lies in              core_moving.hpp  which blocks are worth moving
//
// Refill takes up to half a bin from one word of the shared bitmap; if no word is left, it claims a span. Drain gives the
// older half of a full bin back, grouped by word. Bins begin small and double while they are used, beyond kMaxSlots only
// if they are refilled between drains: so two threads that exchange blocks keep what they get. Their bytes are granted from
// the thread's own share and a common budget, so that idle threads hold little; bins that stay idle are drained.
//
//   Invariant: sum of capacity * slot_bytes over a cache's bins == granted <= allowance;
//              sum of (allowance - kThreadBytes) over all caches + budget_ == the common budget.
//
// Locks, in the order in which they are taken: admission (of direct blocks under a limit), registry (caches and their
// records), direct blocks, then the arena's. A template over Atomics, Config and PageSource: the model tests and the fault
// tests run this code, not a copy.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "freehold/alloc/arena.hpp"
#include "freehold/alloc/direct_blocks.hpp"
#include "freehold/alloc/live_figures.hpp"
#include "freehold/alloc/metadata.hpp"
#include "freehold/alloc/stats.hpp"
#include "freehold/alloc/thread_cache.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/slots/slot_groups.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/fork_gate.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Core {
 public:
  using Classes = typename Config::Classes;
  using Cache = ThreadCache<A, Config>;
  using Gate = sync::ForkGate<A>;
  using ArenaType = Arena<A, Config, Pages>;
  using Run = typename ArenaType::Runs::Run;
  using Runs = typename ArenaType::Runs::Runs;
  using Reserved = typename ArenaType::Runs::Reserved;
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;

  constexpr Core() noexcept = default;

  // Not thread-safe; false if the page source refused. `budget_bytes`: what caches may hold beyond kThreadBytes each.
  // `cpus`: how many threads can run at once. `gate`: where callers enter, if other threads' caches are to be emptied.
  [[nodiscard]] bool init(Pages& pages, const ArenaSettings& settings, std::size_t budget_bytes, unsigned cpus,
                          const Gate* gate = nullptr) noexcept {
    pages_ = &pages;
    gate_ = gate;
    max_foreign_spans_ = cpus;
    most_words_ = std::int64_t{cpus} * Config::kReservedWords;
    run_budget_.store(most_words_, std::memory_order_relaxed);
    metadata_.attach(pages);
    common_budget_ = budget_bytes;
    budget_.store(budget_bytes, std::memory_order_relaxed);
    direct_.attach(pages, arena_.budget());
    return arena_.init(pages, settings);
  }

  [[nodiscard]] ArenaType& arena() noexcept { return arena_; }

  // So many threads will allocate, although they do not attach: those who share the caches of CPUs.
  void expect_threads(std::size_t n) noexcept {
    const sync::Guard guard(registry_);
    arena_.free_spans().expect_threads(n);
  }
  // A cache for the calling thread; null if there is no memory for one.
  [[nodiscard]] Cache* attach() noexcept;
  // Gives back everything the cache holds, and the cache.
  void detach(Cache* cache) noexcept;

  // A slot of class c when pop() found none. Null: out of memory.
  [[nodiscard]] void* refill(Cache& cache, SizeClass c) noexcept;
  // Takes a slot of class c that push() had no room for.
  void drain(Cache& cache, SizeClass c, void* slot) noexcept;
  // Makes room for one entry, where there is none and the bin gets an array; what is there may be slots only.
  void make_room(Cache& cache, SizeClass c) noexcept;
  // Not thread-safe: before the first cache. For observers that see allocations only where a bin is refilled.
  void keep_no_bursts() noexcept { keeps_bursts_ = false; }
  // All caches' slow calls from now on, and those of caches to come: what `choose` returns, under the registry's lock.
  template <class Choose>
  void set_slow_calls(Choose choose) noexcept {
    const sync::Guard guard(registry_);
    slow_calls_ = choose();
    for (Cache* cache = caches_; cache != nullptr; cache = cache->next)
      cache->slow.store(slow_calls_, std::memory_order_relaxed);
  }
  // The same for threads that have no cache (yet, or any more): one slot, straight from and to the bitmap. Any thread.
  [[nodiscard]] void* allocate_uncached(SizeClass c) noexcept;
  void free_uncached(SizeClass c, void* slot) noexcept;
  // Up to n <= 64 slots of one word, at least one unless out of memory, for a cache that is not a thread's; `cpu` keeps CPUs
  // apart as thread ids keep threads apart. Any thread.
  [[nodiscard]] std::size_t take_batch(SizeClass c, void** slots, std::size_t n, unsigned cpu) noexcept;
  // Gives n <= kMaxBatch slots back. Any thread.
  void give_batch(SizeClass c, void* const* slots, std::size_t n) noexcept;
  // Empties the cache's bins into the pools.
  void flush(Cache& cache) noexcept;

  // Blocks above the largest class, or with an alignment that no class has: runs of spans, or mapped one by one where the
  // arena has no room. `zero`: whether the block should read as zero; then, whether it does. `cache`: the caller's own, or
  // null. `room`: bytes behind the block, if they are to be had, into which it can grow.
  [[nodiscard]] void* allocate_large(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero,
                                     std::size_t room = 0) noexcept;
  // The common case of the two around this: a run out of what the thread keeps, and into it, without a look at what others
  // write. bytes <= kMostRunBytes. Null, or false: nothing done; allocate_large() or free_large() can.
  [[nodiscard, gnu::always_inline]] inline void* allocate_kept(Cache& cache, std::size_t bytes) noexcept;
  [[nodiscard, gnu::always_inline]] inline bool free_kept(Cache& cache, void* block) noexcept;
  // Frees anything that is not a slot: null, a run, a direct block; anything else is misuse.
  void free_large(Cache* cache, void* block) noexcept;
  // Reports the misuse of taking `block`, which is neither a slot nor the start of a large block, for one.
  [[gnu::cold, gnu::noinline]] void report(const void* block) noexcept;
  // Bytes of a block that is not a slot; 0 if there is no such block.
  [[nodiscard]] std::size_t large_bytes(const void* block) noexcept;
  // The block that the address lies in, in use or not; start is null if there is none. Cost: up to 64 spans are looked at.
  [[nodiscard]] BlockPlace block_around(const void* pointer) noexcept;
  // True if the pages of a block of the caller's would be less crowded without it while its thread's next malloc of the same
  // size gets a slot on a lower page. `cache`: the caller's own.
  [[nodiscard]] bool is_worth_moving(Cache& cache, const void* block) noexcept;
  // The second half of that, for any class: whether there is such a slot below a page. Then it is the cache's newest entry.
  [[nodiscard]] bool find_slot_below(Cache& cache, SizeClass c, std::size_t page) noexcept;
  // The number of the arena's page where `address` lies.
  [[nodiscard]] std::size_t page_at(const void* address) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) - arena_.base()) / Config::kPageBytes;
  }
  // Calls f(BlockPlace) for every block in use.
  template <class F>
  void for_each_block(F&& f) noexcept;
  // How many slots all caches may hold now.
  [[nodiscard]] std::size_t most_cached_slots() noexcept;
  // Looks at the slots in caches for pointers that are no slots, and slots that are free already, and reports them.
  // `stamp_of`: a number that changes when a thread runs, by its system's id; 0: it runs now, and its cache is left out.
  // `room`: for `most` slots; those beyond are left out. `mine`: the caller's own.
  template <class StampOf>
  void report_misuse_in_caches(const Cache* mine, void** room, std::size_t most, StampOf&& stamp_of) noexcept;
  // Changes a large block's size without copying; null: not possible, block untouched. May move pages (mremap).
  [[nodiscard]] void* resize_large(Cache* cache, void* block, std::size_t bytes) noexcept;

  // Gives all free pages back to the system; what caches hold stays. Returns bytes.
  std::size_t trim() noexcept {
    std::size_t bytes = 0;
    while (trim_step(bytes)) continue;
    return bytes;
  }
  // Gives the runs that other threads cache to the arena, but for those of threads that are inside. `mine`: the caller's.
  void reclaim_all_runs(const Cache* mine) noexcept {
    const sync::Guard guard(registry_);
    if (gate_ != nullptr) (void)reclaim_runs(mine, false);
  }
  // A bounded part of that; adds to `bytes`. Returns whether there is more.
  [[nodiscard]] bool trim_step(std::size_t& bytes) noexcept {
    bytes += direct_.drop_kept(~std::uint64_t{0});
    return arena_.purge().trim_step(Clock::now(), bytes);
  }
  // Gives back memory beyond the budget, in a bounded step. Returns whether another would help.
  [[nodiscard]] bool relieve() noexcept {
    const std::uint64_t now = Clock::now();
    direct_.relieve(now);
    return arena_.purge().relieve(now) && arena_.budget().excess() > 0;
  }
  // Gives back memory that has been free for the delay, in a bounded step that waits for no lock.
  [[nodiscard]] Due purge_idle() noexcept;
  [[nodiscard]] bool keeps_mappings() const noexcept { return direct_.keeps_some(); }
  // See engine.hpp. Returns the former limit.
  std::uint64_t set_limit(std::uint64_t bytes) noexcept { return arena_.purge().set_limit(bytes); }
  [[nodiscard]] bool limit_was_met() const noexcept { return arena_.purge().limit_was_met(); }
  void stats(Stats& out) noexcept;
  // See Arena::for_each_live_figure(). Takes no lock, reads none of them.
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    arena_.for_each_live_figure(f);
    direct_.for_each_live_figure(f);
    f(LiveFigure::kThreads, threads_);
    f(LiveFigure::kLateFrees, late_frees_);
    f(LiveFigure::kCacheRoomBytes, budget_);
    f(LiveFigure::kPeakThreads, peak_threads_);
    f(LiveFigure::kLockWaits, registry_.waits().counter());
    f(LiveFigure::kLockWaits, admission_.waits().counter());
    f(LiveFigure::kRemoteFrees, past_remote_frees_);
  }
  // Tells readers outside the process where the counters of threads and size classes are.
  [[nodiscard]] LiveTables live_tables() const noexcept {
    const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
    LiveTables tables{.bytes = sizeof(LiveTables), .unused = 0, .threads = live_layout_of<Cache>(), .classes = {}};
    tables.threads.first = address(&caches_);
    tables.threads.changes = address(&cache_changes_.number());
    tables.classes.past_refills = address(&past_refills_);
    tables.classes.past_drains = address(&past_drains_);
    arena_.add_live_classes(tables.classes);
    return tables;
  }

  // For fork: whether no thread but the owner of `mine` has marked itself as inside.
  [[nodiscard]] bool others_are_outside(const Cache* mine) noexcept {
    const sync::Guard guard(registry_);
    for (const Cache* cache = caches_; cache != nullptr; cache = cache->next)
      if (cache != mine && !sync::ForkGate<A>::is_quiet(cache->inside)) return false;
    return true;
  }
  // False while another thread holds the registry's lock: one that was stopped there holds it for ever.
  [[nodiscard]] bool registry_is_free() noexcept {
    const bool free = registry_.try_lock();
    if (free) registry_.unlock();
    return free;
  }
  // Detaches every cache of which is_gone(cache): its thread has ended and cannot do it.
  template <class IsGone>
  void detach_all(IsGone is_gone) noexcept {
    for (;;) {
      Cache* gone[16];
      unsigned n = 0;
      {
        const sync::Guard guard(registry_);
        for (Cache* cache = caches_; cache != nullptr && n < 16; cache = cache->next)
          if (is_gone(*cache)) gone[n++] = cache;
      }
      for (unsigned i = 0; i < n; ++i) detach(gone[i]);
      if (n < 16) return;
    }
  }
  // In a fork's child no thread is inside the engine; a lock may have been held by a thread that only read. The child
  // forgets the caches of threads that it does not have.
  void after_fork_in_child(Cache* mine) noexcept {
    registry_.reset();
    cache_changes_.reset();
    admission_.reset();
    direct_.lock().reset();
    arena_.reset_locks();
    adopt_orphans(mine);
  }

  // Bytes of runs that may not be reported yet; a hint.
  [[nodiscard]] std::int64_t most_unreported_bytes() const noexcept {
    return reserved_words() * (kReportSpans << ArenaType::kSpanShift);
  }
  // In a fork's child: what its thread keeps may be half taken by a thread that is not there.
  void after_fork_amid_an_entry(Cache* mine) noexcept {
    if (mine == nullptr || mine->runs_closed.load(std::memory_order_relaxed) == 0) return;
    mine->runs = nullptr;
    mine->runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
    mine->runs_closed.store(0, std::memory_order_relaxed);
  }

  // Thread caches alive; a hint.
  [[nodiscard]] std::uint64_t threads() const noexcept { return threads_.load(std::memory_order_relaxed); }

  // The invariants of caches, budget and arena; call at rest.
  [[nodiscard]] bool check_invariants() noexcept;
  // True if the budget's figures are what a recount says; call at rest, unless misuse was seen.
  [[nodiscard]] bool check_accounts() noexcept;

 private:
  static constexpr std::uint32_t kFirstCpuId = 1U << 30;
  static constexpr unsigned kSlowCallsPerTick = 64;
  static constexpr unsigned kRunsPerTick = 8;  // while something is due
  static constexpr unsigned kTicksPerIdleLook = 16;
  static constexpr std::int64_t kReportBytes = 64 * 1024;
  static constexpr std::int64_t kReportSpans = (std::int64_t{2} << 20) / static_cast<std::int64_t>(ArenaType::kSpanBytes);
  static constexpr std::size_t kMoveBytes = 256 * 1024;  // below, copying is cheaper than two system calls

  static constexpr unsigned max_slots(SizeClass c) noexcept {
    return static_cast<unsigned>(
        std::clamp<std::size_t>(Config::kBinBytes / Classes::slot_bytes(c), Config::kMinSlots, Config::kMaxSlots));
  }
  static constexpr unsigned burst_slots(SizeClass c) noexcept {
    return static_cast<unsigned>(
        std::clamp<std::size_t>(Config::kBurstBytes / Classes::slot_bytes(c), max_slots(c), Config::kBurstSlots));
  }
  static constexpr unsigned first_slots(SizeClass c) noexcept {
    const std::size_t n = Config::kFirstBytes / Classes::slot_bytes(c);
    return n > Config::kFirstSlots ? Config::kFirstSlots : (n < 1 ? 1 : static_cast<unsigned>(n));
  }

  [[nodiscard, gnu::noinline]] pool::Taken find_slots(pool::Cursor& cursor, SizeClass c, unsigned want,
                                                      std::uint32_t thread_id, Cache* cache) noexcept;
  [[nodiscard]] bool grant(Cache& cache, std::size_t bytes) noexcept;
  void release_grant(Cache& cache, std::size_t bytes) noexcept;
  [[nodiscard, gnu::noinline]] bool grow(Cache& cache, SizeClass c) noexcept;
  void shrink(Cache& cache, SizeClass c) noexcept;
  [[gnu::noinline]] void push_looked_at(Cache& cache, SizeClass c, void* slot) noexcept;
  void give_back(Cache& cache, SizeClass c, void* const* slots, std::size_t n) noexcept;
  void give_oldest(Cache& cache, SizeClass c) noexcept;
  [[gnu::always_inline]] inline void count_slow_call(Cache& cache) noexcept;
  [[gnu::noinline]] void tick_slow(Cache& cache) noexcept;
  void look_for_idle_bins(Cache& cache) noexcept;
  void adopt_orphans(Cache* mine) noexcept;
  void empty_bin(Cache& cache, SizeClass c) noexcept;
  [[nodiscard]] bool is_kept(SpanIndex i) noexcept;
  [[nodiscard]] bool check_bin(const Cache& cache, SizeClass c) noexcept;

  [[gnu::always_inline]] inline void report_slots(Cache& cache, std::int64_t bytes) noexcept;
  [[gnu::noinline]] void report_now(Cache& cache) noexcept;
  [[nodiscard, gnu::noinline]] std::size_t top_up(Cache& cache, SizeClass c, unsigned want, std::size_t n) noexcept;
  [[nodiscard]] Runs* own_runs(Cache& cache) noexcept;
  void make_runs(Cache& cache) noexcept;
  [[nodiscard]] Reserved* word_to_reserve(Runs& runs) noexcept;
  void reserve_around(Cache& cache, SpanIndex first) noexcept;
  [[nodiscard]] RunPlace allocate_reserved(Cache& cache, Run run, unsigned alignment) noexcept;
  [[gnu::noinline]] void after_free_kept(Cache& cache, Runs& runs) noexcept;
  [[nodiscard]] std::int64_t reserved_words() const noexcept {
    return most_words_ - run_budget_.load(std::memory_order_relaxed);  // relaxed: a hint
  }
  [[nodiscard]] bool resize_run(Cache* cache, SpanIndex first, std::uint32_t pages) noexcept;
  void note_runs_used(Cache& cache) noexcept;
  void relieve(Runs* own, std::size_t freed) noexcept;
  void reclaim_if_it_helps(std::uint64_t now) noexcept;
  void unreserve(Reserved& r, std::uint64_t now) noexcept;
  void empty_runs(Runs& runs) noexcept;
  void end_runs(Cache& cache) noexcept;
  [[nodiscard]] bool give_cached_runs(Cache* mine) noexcept;
  [[nodiscard]] bool reclaim_runs(const Cache* mine, bool only_idle) noexcept;
  // True if the arena, or a mapping that is kept, may have something that is due.
  [[nodiscard]] bool is_tick_due(std::uint64_t now) const noexcept {
    return arena_.purge().is_tick_due(now) || direct_.keeps_some();
  }
  // Gives back memory that has been free for the delay, in a bounded step.
  void tick(std::uint64_t now) noexcept {
    const std::uint64_t delay = arena_.purge().delay_ms();
    if (direct_.keeps_some() && now > delay) (void)direct_.drop_kept(now - delay);
    // The purger, where there is one, takes back the spans that threads keep; the arena does not know of them.
    if (arena_.purge().tick(now) && reserved_words() != 0) arena_.due().note();
    if (direct_.keeps_some()) arena_.due().note();
  }
  [[nodiscard]] RunPlace allocate_run(Cache* cache, Run run, unsigned alignment) noexcept;
  [[nodiscard]] bool admit(Cache* cache, std::size_t bytes) noexcept;
  [[nodiscard]] void* allocate_as_run(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero,
                                      std::size_t room) noexcept;
  [[nodiscard]] void* allocate_direct(Cache* cache, std::size_t bytes, std::size_t alignment, bool& zero) noexcept;
  [[nodiscard]] void* move_out_of_arena(Cache* cache, void* block, std::size_t old_bytes, std::size_t bytes) noexcept;
  [[nodiscard]] bool is_in_use(SizeClass c, SpanIndex i, std::uint32_t number) noexcept;
  [[nodiscard]] bool is_well_used(SpanIndex i, SizeClass c, std::size_t page) noexcept;
  void put_back_above(Cache& cache, SizeClass c, std::size_t page) noexcept;
  [[nodiscard]] bool in_arena(std::uintptr_t address) const noexcept {
    return (address - arena_.base()) >> ArenaType::kSpanShift < arena_.span_count();
  }
  // The first span of the run in use that begins at `address`; kNoSpan: none does. The system may have put a direct block
  // between the arena's chunks, since nothing is reserved there.
  [[nodiscard]] SpanIndex run_at(std::uintptr_t address) const noexcept {
    if (!in_arena(address)) return kNoSpan;
    const auto i = static_cast<SpanIndex>((address - arena_.base()) >> ArenaType::kSpanShift);
    return arena_.address(i) == address && arena_.runs().run_pages(i) != 0 ? i : kNoSpan;
  }

  ArenaType arena_;
  Pages* pages_ = nullptr;
  const Gate* gate_ = nullptr;
  // So many spans of a class may be in use by other threads before a thread shares one instead of claiming a new one.
  unsigned max_foreign_spans_ = 2;
  std::size_t common_budget_ = 0;
  std::int64_t most_words_ = 0;  // that threads may reserve in all
  bool may_reclaim_ = true;      // until the system refuses to fence; under the registry's lock

  // Under a limit: from the question whether a direct block may be had until it is accounted for.
  alignas(base::kCacheLine) Lock admission_;
  alignas(base::kCacheLine) Lock registry_;
  Metadata<Pages> metadata_;
  Cache* caches_ = nullptr;
  typename A::template atomic<std::uint64_t> threads_{0};  // written under the lock
  std::uint64_t peak_threads_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint32_t left_ids_[Config::kShards]{};  // of the thread that ended last on each CPU: the next one finds its spans
  const typename Cache::Slow* slow_calls_ = nullptr;
  bool keeps_bursts_ = true;
  sync::ChangeCount<A> cache_changes_;  // of the list, and of what ended threads had counted
  std::uint64_t past_remote_frees_ = 0;
  PerClass<std::uint64_t, Classes::kCount> past_refills_, past_drains_;

  // For core_moving.hpp: the page that is being filled, and how often was asked. Hints.
  struct Finger {
    typename A::template atomic<std::size_t> page{0};
    typename A::template atomic<std::uint32_t> calls{0};
  };
  PerClass<Finger, Classes::kCount> fingers_;

  DirectBlocks<A, Config, Pages> direct_;

  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> budget_{0};
  typename A::template atomic<std::uint64_t> late_frees_{0};
  typename A::template atomic<std::uint64_t> next_reclaim_{0};  // milliseconds; of memory that is too much
  typename A::template atomic<std::int64_t> run_budget_{0};     // chunks in which threads may still reserve what is free
};

}  // namespace freehold::alloc

#include "freehold/alloc/core_caches.hpp"
#include "freehold/alloc/core_large.hpp"
#include "freehold/alloc/core_look.hpp"
#include "freehold/alloc/core_moving.hpp"
#include "freehold/alloc/core_slots.hpp"
#include "freehold/alloc/core_stats.hpp"
