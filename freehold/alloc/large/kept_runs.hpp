// SPDX-License-Identifier: MIT
// The free spans and mappings that threads keep (run_cache.hpp): which thread may keep how many words of them, and how other
// threads get them back.
//
//   Invariant: budget_ + the words of all threads' caches == most_words_.
//
// The owner takes no lock: it is inside by its cache's mark, and asks runs_closed. Other threads close a cache's runs under
// the registry's lock. Source of the fence on all CPUs: sync/fork_gate.hpp.
#pragma once
#include <new>
#include <utility>

#include "freehold/alloc/front/cache_registry.hpp"
#include "freehold/alloc/large/direct_blocks.hpp"
#include "freehold/alloc/spans/arena.hpp"
#include "freehold/base/check.hpp"
#include "freehold/sync/fork_gate.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class KeptRuns {
 public:
  using Cache = ThreadCache<A, Config>;
  using Gate = sync::ForkGate<A>;
  using ArenaType = Arena<A, Config, Pages>;
  using Run = typename ArenaType::Runs::Run;
  using Runs = typename ArenaType::Runs::Runs;
  using Reserved = typename ArenaType::Runs::Reserved;
  static constexpr std::int64_t kReportSpans = (std::int64_t{2} << 20) / static_cast<std::int64_t>(ArenaType::kSpanBytes);

  // The longest mapping that a thread keeps: the budget does not know that it is free.
  static constexpr std::size_t kMostMappedBytes = std::size_t{kReportSpans} << ArenaType::kSpanShift;

  constexpr KeptRuns(ArenaType& arena, CacheRegistry<A, Config, Pages>& registry,
                     DirectBlocks<A, Config, Pages>& direct) noexcept
      : arena_(arena), registry_(registry), direct_(direct) {}

  // Not thread-safe. `gate`: see Core::init().
  void init(unsigned cpus, const Gate* gate) noexcept {
    gate_ = gate;
    most_words_ = std::int64_t{cpus} * Config::kReservedWords;
    budget_.store(most_words_, std::memory_order_relaxed);
  }

  // --- for the owner of a cache ----------------------------------------------------------------------------------------

  // Null if the cache has none, or another thread is in it. Pre: the caller is the cache's owner, and inside by the cache's
  // mark.
  [[nodiscard]] Runs* own_runs(Cache& cache) noexcept {
    // After our mark was set: either we see that it is closed, or the thread that closed it sees the mark.
    return cache.runs_closed.load(Config::RunOrders::kAskClosed) == 0 ? cache.runs : nullptr;
  }
  [[nodiscard]] RunPlace allocate_run(Cache* cache, Run run, unsigned alignment, bool grows = true) noexcept {
    RunPlace place;
    if (cache != nullptr) place = allocate_reserved(*cache, run, alignment);
    if (place.first != kNoSpan) return place;
    place = arena_.runs().allocate_run(run, alignment, Clock::now(), grows);
    if (place.first != kNoSpan && cache != nullptr) reserve_around(*cache, place.first);
    if (place.first != kNoSpan || !grows || !give_cached_runs(cache)) return place;
    return arena_.runs().allocate_run(run, alignment, Clock::now());
  }
  // The common case of that, without a look at what others write. bytes <= kMostRunBytes. Null: nothing done.
  [[nodiscard, gnu::always_inline]] void* allocate_kept(Cache& cache, std::size_t bytes) noexcept {
    Runs* const runs = own_runs(cache);
    if (runs == nullptr) return nullptr;
    const Run run = Run::coloured(bytes);
    for (Reserved& r : *runs)
      if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, 1); first != kNoSpan)
        return reinterpret_cast<void*>(arena_.address(first) + run.at(first).colour());
    return nullptr;
  }
  // A block in the mapping that the thread freed last, if that is hardly longer. Null: nothing done.
  [[nodiscard, gnu::always_inline]] void* allocate_mapped(Cache& cache, std::size_t bytes) noexcept {
    Runs* const runs = own_runs(cache);
    MappedBlock<A>* const kept = runs != nullptr ? runs->kept_block.load() : nullptr;
    if (kept == nullptr) return nullptr;
    const std::size_t want = base::align_up(bytes, Config::page_bytes());
    if (want > kept->mapped_bytes || kept->mapped_bytes - want > kept->mapped_bytes / 8) return nullptr;
    kept->bytes.store(want, std::memory_order_relaxed);
    runs->kept_block.store(nullptr);
    cache.may_have_mapping = false;
    return reinterpret_cast<void*>(kept->start.load(std::memory_order_relaxed));
  }
  // Frees the block that the thread allocated last, and keeps the mapping, if the budget has room. False: nothing done.
  [[nodiscard, gnu::always_inline]] bool free_mapped(Cache& cache, Runs& runs, const void* block) noexcept {
    if (!cache.is_last_mapped(block) || runs.kept_block.load() != nullptr) return false;
    MappedBlock<A>& last = *cache.last_mapped;
    // 0: freed already, by a thread that keeps it.
    if (last.mapped_bytes > kMostMappedBytes || last.bytes.load(std::memory_order_relaxed) == 0) return false;
    if (arena_.budget().excess() + static_cast<std::int64_t>(last.mapped_bytes) > 0) return false;
    if (!runs.may_keep_block && !(runs.may_keep_block = take_word([] { return true; }))) return false;
    last.bytes.store(0, std::memory_order_relaxed);
    runs.kept_block.store(&last);
    runs.kept_since = 0;
    return cache.may_have_mapping = true;
  }
  // The mapping goes to those that DirectBlocks keeps. False: the caller does not wait for its lock.
  bool give_mapping(Runs& runs, std::uint64_t now, bool waits = true) noexcept {
    MappedBlock<A>* const kept = runs.kept_block.load();
    if (kept != nullptr && !direct_.take_back(*kept, now, waits)) return false;
    runs.kept_block.store(nullptr);
    return true;
  }
  // The thread needs another mapping: the best one of all may be its own.
  void give_mapping(Cache* cache) noexcept {
    Runs* const runs = cache != nullptr && cache->may_have_mapping ? own_runs(*cache) : nullptr;
    if (runs == nullptr) return;
    cache->may_have_mapping = false;
    (void)give_mapping(*runs, Clock::now());
  }
  // The same if it was not used for `delay`.
  void give_idle_mapping(Cache& cache, std::uint64_t now, std::uint64_t delay) noexcept {
    Runs* const runs = cache.may_have_mapping ? own_runs(cache) : nullptr;
    if (runs == nullptr) return;
    if (runs->kept_since == 0) runs->kept_since = now;
    if (now - runs->kept_since >= delay) (void)give_mapping(*runs, runs->kept_since);
  }
  // The thread has allocated a direct block.
  void note_mapped(Cache* cache, MappedBlock<A>* block) noexcept {
    if (cache == nullptr || block->mapped_bytes > kMostMappedBytes) return;
    if (cache->runs == nullptr) make_runs(*cache);
    if (own_runs(*cache) != nullptr) cache->last_mapped = block;
  }
  // False: not possible where it is; the run is untouched.
  [[nodiscard]] bool resize_run(Cache* cache, SpanIndex first, std::uint32_t pages) noexcept {
    if (cache != nullptr) {
      Runs* const runs = own_runs(*cache);
      Reserved* const kept = runs != nullptr ? runs->find(first / ArenaType::kChunkSpans) : nullptr;
      if (kept != nullptr) {
        if (arena_.runs().resize_reserved(*runs, *kept, first, pages, Clock::now())) return true;
        unreserve(*kept, Clock::now());  // a part of what is behind it may be there, and a part not
      }
    }
    return arena_.runs().resize_run(first, pages, Clock::now());
  }
  // Has the purger look: it finds either the note, or the use that came before it cleared the note.
  void note_runs_used(Cache& cache) noexcept {
    if (cache.runs_use.load(std::memory_order_relaxed) == RunsUse::kActive) return;  // relaxed: only we set it
    cache.runs_use.store(RunsUse::kActive, Config::RunOrders::kNoteUse);
    arena_.due().note();
  }
  void unreserve(Reserved& r, std::uint64_t now) noexcept {
    if (const void* const twice = arena_.runs().unreserve(r, now); twice != nullptr) [[unlikely]]
      base::fatal(base::HeapError::kDoubleFree, twice);
  }
  // False: a mapping stays, for which the caller does not wait.
  bool empty_runs(Runs& runs, bool waits = true) noexcept {
    const std::uint64_t now = Clock::now();
    for (Reserved& r : runs) unreserve(r, now);
    (void)arena_.runs().report(runs);
    if (!give_mapping(runs, now, waits)) return false;
    budget_.fetch_add(runs.words(), std::memory_order_relaxed);
    runs.remove_all();
    return true;
  }
  // The thread ends. Under the lock, since it need not be inside by the cache's mark.
  void end_runs(Cache& cache) noexcept {
    if (cache.runs == nullptr) return;  // only its owner makes it
    const sync::Guard guard(registry_.lock());
    cache.runs_use.store(RunsUse::kNone, std::memory_order_relaxed);  // relaxed: read under the lock, or as a hint
    (void)empty_runs(*cache.runs);
    registry_.metadata().free(std::exchange(cache.runs, nullptr), sizeof(Runs));
  }

  // --- for other threads ---------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t reserved_words() const noexcept {
    return most_words_ - budget_.load(std::memory_order_relaxed);  // relaxed: a hint
  }
  // Bytes of runs that may not be reported yet; a hint.
  [[nodiscard]] std::int64_t most_unreported_bytes() const noexcept {
    return reserved_words() * (kReportSpans << ArenaType::kSpanShift);
  }
  // True if other threads' caches can be emptied.
  [[nodiscard]] bool can_reclaim() const noexcept { return gate_ != nullptr; }
  // Between closing a thread's runs and the look at its mark stands a fence on all CPUs, and between the owner's mark and
  // its look at `runs_closed` a free one: of the two threads one sees the other. We wait for no thread: one that is inside
  // keeps its runs.
  [[nodiscard]] bool reclaim_runs(const Cache* mine, bool only_idle) noexcept {
    using Orders = typename Config::RunOrders;
    bool some = false, closed = false;
    if (!may_reclaim_) return false;
    for (Cache* cache = registry_.first(); cache != nullptr; cache = cache->next) {
      if (cache == mine || cache->runs == nullptr) continue;
      const RunsUse use = cache->runs_use.load(Orders::kLookForUse);
      if (use == RunsUse::kNone) continue;
      some = true;
      if (use == RunsUse::kActive) cache->runs_use.store(RunsUse::kIdle, std::memory_order_relaxed);  // relaxed: a hint
      if (use == RunsUse::kActive && only_idle) continue;
      cache->runs_closed.store(1, std::memory_order_relaxed);  // relaxed: the fence orders it
      closed = true;
    }
    if (!closed) return some;
    may_reclaim_ = gate_->fence_others();
    for (Cache* cache = registry_.first(); cache != nullptr; cache = cache->next) {
      if (cache->runs_closed.load(std::memory_order_relaxed) == 0) continue;  // relaxed: only we write it
      if (may_reclaim_ && Gate::is_quiet(cache->inside)) {
        cache->runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
        if (!empty_runs(*cache->runs, !only_idle)) cache->runs_use.store(RunsUse::kIdle, std::memory_order_relaxed);
      }
      cache->runs_closed.store(0, Orders::kOpen);
    }
    return true;
  }
  // Memory is short. Returns whether some went to the arena, or to the system.
  [[nodiscard]] bool give_cached_runs(Cache* mine) noexcept {
    bool some = false;
    if (mine != nullptr) {
      if (Runs* const runs = own_runs(*mine); runs != nullptr && runs->words() != 0) {
        (void)empty_runs(*runs);
        some = true;
      }
    }
    {
      const sync::Guard guard(registry_.lock());
      some = (gate_ != nullptr && reclaim_runs(mine, false)) || some;
    }
    return direct_.drop_kept(~std::uint64_t{0}) != 0 || some;
  }
  // In a fork's child: what its thread keeps may be half taken by a thread that is not there.
  static void after_fork_amid_an_entry(Cache* mine) noexcept {
    if (mine == nullptr || mine->runs_closed.load(std::memory_order_relaxed) == 0) return;
    mine->runs = nullptr;
    mine->runs_use.store(RunsUse::kNone, std::memory_order_relaxed);
    mine->runs_closed.store(0, std::memory_order_relaxed);
  }

 private:
  // The first use of a run by this thread.
  void make_runs(Cache& cache) noexcept {
    const sync::Guard guard(registry_.lock());
    void* const memory = registry_.metadata().allocate(sizeof(Runs));
    if (memory == nullptr) return;
    cache.runs = new (memory) Runs;
    cache.runs->began_alone = registry_.had_one_thread_locked();
  }
  // Returns whether a thread may keep another word, and if it does not keep too many.
  template <class MayKeep>
  [[nodiscard]] bool take_word(MayKeep may_keep) noexcept {
    std::int64_t left = budget_.load(std::memory_order_relaxed);  // relaxed: a number, it publishes nothing
    if (may_keep())
      while (left > 0)
        if (budget_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed, std::memory_order_relaxed)) return true;
    return false;
  }
  // Null: it must not keep a word more.
  [[nodiscard]] Reserved* word_to_reserve(Runs& runs) noexcept {
    if (take_word([&] { return runs.count() < Runs::kWords; })) return &runs.add();
    if (runs.count() == 0) return nullptr;
    Reserved& least = runs.least();
    unreserve(least, Clock::now());
    return &least;
  }
  // A run came from the arena: the thread keeps the other free spans of its chunk.
  void reserve_around(Cache& cache, SpanIndex first) noexcept {
    if (!arena_.runs().is_worth_reserving(first)) return;
    if (cache.runs == nullptr) make_runs(cache);
    Runs* const runs = own_runs(cache);
    if (runs == nullptr) return;
    Reserved* to = runs->find(first / ArenaType::kChunkSpans);
    if (to == nullptr) to = word_to_reserve(*runs);
    if (to == nullptr) return;
    to->set_chunk(first / ArenaType::kChunkSpans);
    (void)arena_.runs().reserve(*to);
    note_runs_used(cache);
  }
  // From the spans that the thread keeps: those that still have their pages, then those that others have freed in its chunks
  // or that were of classes; those of other chunks that have pages, where a look is cheap; then any that it keeps.
  [[nodiscard]] RunPlace allocate_reserved(Cache& cache, Run run, unsigned alignment) noexcept {
    Runs* const runs = own_runs(cache);
    if (runs == nullptr) return {};
    for (Reserved& r : *runs)
      if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, alignment); first != kNoSpan)
        return {first, false};
    unsigned tries = 0;
    do {
      for (Reserved& r : *runs)
        if (arena_.runs().reserve(r))
          if (const SpanIndex first = arena_.runs().allocate_dirty(*runs, r, run, alignment); first != kNoSpan)
            return {first, false};
    } while (tries++ == 0 && arena_.source().reclaim_for_runs());
    const std::uint64_t now = Clock::now();
    RunPlace place{arena_.runs().allocate_dirty(run, alignment, runs->began_alone, now)};
    for (Reserved* r = runs->begin(); place.first == kNoSpan && r != runs->end(); ++r)
      place = arena_.runs().allocate_reserved(*runs, *r, run, alignment, now);
    if (runs->run_spans > kReportSpans) (void)arena_.runs().report(*runs);
    return place;
  }

  ArenaType& arena_;
  CacheRegistry<A, Config, Pages>& registry_;
  DirectBlocks<A, Config, Pages>& direct_;
  const Gate* gate_ = nullptr;
  std::int64_t most_words_ = 0;  // that threads may reserve in all
  bool may_reclaim_ = true;      // until the system refuses to fence; under the registry's lock
  // Chunks in which threads may still reserve what is free.
  alignas(base::kCacheLine) typename A::template atomic<std::int64_t> budget_{0};
};

}  // namespace freehold::alloc
