// SPDX-License-Identifier: MIT
// All threads' caches: their records and ids, and what ended threads had counted; for fork, statistics, and readers outside
// the process.
//
//   Invariants: a cache is in the list from add() to remove(); threads() is the list's length. peak_threads_ >= threads().
//               The sums of the past and those of the list's caches never fall together, but within a change of changes_.
//
// lock() guards all of it, and the memory of records, arrays and RunCaches. Its holder may look into any cache; what a
// cache's owner writes without the lock is a hint there. Readers outside the process take no lock: changes_ tells them.
#pragma once
#include <algorithm>
#include <new>
#include <utility>

#include "freehold/alloc/front/thread_cache.hpp"
#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/alloc/observe/stats.hpp"
#include "freehold/alloc/spans/free_spans.hpp"
#include "freehold/alloc/spans/metadata.hpp"
#include "freehold/base/keep_errno.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/fork_gate.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages>
class CacheRegistry {
 public:
  using Classes = typename Config::Classes;
  using Cache = ThreadCache<A, Config>;
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;

  // Both hear of threads that come and go.
  constexpr CacheRegistry(FreeSpans<A, Config>& spans, ThreadIds<A>& ids) noexcept : spans_(spans), ids_(ids) {}

  // Not thread-safe.
  void attach(Pages& pages) noexcept { metadata_.attach(pages); }
  [[nodiscard]] Lock& lock() noexcept { return lock_; }
  [[nodiscard]] const Lock& lock() const noexcept { return lock_; }
  // Under the lock.
  [[nodiscard]] Metadata<Pages>& metadata() noexcept { return metadata_; }

  // A cache for the calling thread; null if there is no memory for one.
  [[nodiscard]] Cache* add() noexcept {
    static_assert(sizeof(Cache) <= 8192);
    const sync::Guard guard(lock_);
    void* memory = metadata_.allocate(sizeof(Cache) + 2 * sizeof(void*));
    if (memory == nullptr) return nullptr;
    auto* cache = new (memory) Cache(reinterpret_cast<void**>(static_cast<Cache*>(memory) + 1));
    cache->allowance = Config::kThreadBytes;
    cache->id = std::exchange(left_ids_[spans_.shard_number()], 0);
    if (const unsigned node = node_of_caller<Config>(); cache->id == 0 || !ids_.is_of_node(cache->id, node))
      give_id(*cache, node);
    cache->slow.store(slow_calls_, std::memory_order_relaxed);
    const sync::Change change(changes_);
    cache->next = first_;
    if (first_ != nullptr) first_->previous = cache;
    first_ = cache;
    threads_.store(threads() + 1, std::memory_order_relaxed);
    peak_threads_ = std::max(peak_threads_, threads());
    spans_.expect_threads(peak_threads_);
    ids_.note_begin(cache->id);
    return cache;
  }
  // Gives the record and the arrays back of a cache that holds nothing any more: one lock for all.
  void remove(Cache* cache) noexcept {
    const sync::Guard guard(lock_);
    const sync::Change change(changes_);
    past_remote_frees_ += cache->remote_frees.load(std::memory_order_relaxed);
    for (const SizeClass c : AllClasses<Classes>{}) {
      past_refills_[c] += cache->bins[c].refills.load(std::memory_order_relaxed);
      past_drains_[c] += cache->bins[c].drains.load(std::memory_order_relaxed);
      if (cache->bins[c].array != nullptr) metadata_.free(cache->bins[c].array, bin_array_bytes(cache->bins[c].capacity));
    }
    if (cache->previous != nullptr)
      cache->previous->next = cache->next;
    else
      first_ = cache->next;
    if (cache->next != nullptr) cache->next->previous = cache->previous;
    threads_.store(threads() - 1, std::memory_order_relaxed);
    ids_.note_end(cache->id);
    left_ids_[spans_.shard_number()] = cache->id;
    metadata_.free(cache, sizeof(Cache) + 2 * sizeof(void*));
  }
  // The owner is about to look for memory. If it has moved to another memory node, or began before any thread there did, it
  // gets an id that says so; but while all is on one node, not a thread alone.
  [[gnu::noinline]] void follow_node(Cache& cache) noexcept {
    const unsigned node = node_of_caller<Config>();
    if (ids_.is_of_node(cache.id, node) || (ids_.node_mask() == 0 && threads() == 1)) return;
    const base::KeepErrno keep;
    const sync::Guard guard(lock_);
    ids_.note_end(cache.id);
    give_id(cache, node);
    ids_.note_begin(cache.id);
  }
  [[nodiscard]] std::uint32_t id_of_cpu(unsigned cpu) const noexcept {
    return ids_.of_cpu(kFirstCpuId, cpu, node_of_caller<Config>());
  }
  // No two threads had caches at the same time. Under the lock.
  [[nodiscard]] bool had_one_thread_locked() const noexcept { return peak_threads_ == 1; }
  // Tells how many threads will allocate, although they do not get caches: those that share the caches of CPUs.
  void expect_threads(std::size_t n) noexcept {
    const sync::Guard guard(lock_);
    spans_.expect_threads(n);
  }
  // All caches' slow calls from now on, and those of caches to come: what `choose` returns, under the lock.
  template <class Choose>
  void set_slow_calls(Choose choose) noexcept {
    const sync::Guard guard(lock_);
    slow_calls_ = choose();
    for (Cache* cache = first_; cache != nullptr; cache = cache->next)
      cache->slow.store(slow_calls_, std::memory_order_relaxed);
  }
  // The youngest; the others by Cache::next. Under the lock, or in a fork's child.
  [[nodiscard]] Cache* first() noexcept { return first_; }
  // Up to `most` caches of which is_wanted(cache).
  template <class IsWanted>
  [[nodiscard]] unsigned find(IsWanted is_wanted, Cache** found, unsigned most) noexcept {
    const sync::Guard guard(lock_);
    unsigned n = 0;
    for (Cache* cache = first_; cache != nullptr && n < most; cache = cache->next)
      if (is_wanted(*cache)) found[n++] = cache;
    return n;
  }
  // Caches alive; a hint.
  [[nodiscard]] std::uint64_t threads() const noexcept { return threads_.load(std::memory_order_relaxed); }
  // How many slots all caches may hold now.
  [[nodiscard]] std::size_t most_slots() noexcept {
    const sync::Guard guard(lock_);
    std::size_t slots = 0;
    for (const Cache* cache = first_; cache != nullptr; cache = cache->next)
      for (const SizeClass c : AllClasses<Classes>{}) slots += cache->bins[c].capacity;
    return slots;
  }
  // For fork: whether no thread but the owner of `mine` has marked itself as inside.
  [[nodiscard]] bool others_are_outside(const Cache* mine) noexcept {
    const sync::Guard guard(lock_);
    for (const Cache* cache = first_; cache != nullptr; cache = cache->next)
      if (cache != mine && !sync::ForkGate<A>::is_quiet(cache->inside)) return false;
    return true;
  }
  // False while another thread holds the lock: one that was stopped there holds it for ever.
  [[nodiscard]] bool is_free() noexcept {
    const bool free = lock_.try_lock();
    if (free) lock_.unlock();
    return free;
  }
  // In a fork's child, whose only thread does not hold the lock.
  void reset() noexcept {
    lock_.reset();
    changes_.reset();
  }
  // Under the lock.
  void add_stats(Stats& out) const noexcept {
    for (const SizeClass c : AllClasses<Classes>{}) {
      auto& of = out.classes[c.index() - 1];
      of.refills = past_refills_[c];
      of.drains = past_drains_[c];
      for (const Cache* cache = first_; cache != nullptr; cache = cache->next) {
        of.refills += cache->bins[c].refills.load(std::memory_order_relaxed);
        of.drains += cache->bins[c].drains.load(std::memory_order_relaxed);
      }
    }
    out.threads = threads();
    out.peak_threads = peak_threads_;
  }
  template <class F>
  void for_each_live_figure(F&& f) const noexcept {
    f(LiveFigure::kThreads, threads_);
    f(LiveFigure::kPeakThreads, peak_threads_);
    f(LiveFigure::kLockWaits, lock_.waits().counter());
    f(LiveFigure::kRemoteFrees, past_remote_frees_);
  }
  // Tells readers outside the process where the counters of threads are.
  void add_live_tables(LiveTables& to) const noexcept {
    const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
    to.threads = live_layout_of<Cache>();
    to.threads.first = address(&first_);
    to.threads.changes = address(&changes_.number());
    to.classes.past_refills = address(&past_refills_);
    to.classes.past_drains = address(&past_drains_);
  }

 private:
  static constexpr std::uint32_t kFirstCpuId = 1U << 30;  // ids of threads are smaller

  // An id that comes round again costs a hint.
  void give_id(Cache& cache, unsigned node) noexcept { cache.id = last_id_ = ids_.next(last_id_, kFirstCpuId, node); }

  alignas(base::kCacheLine) Lock lock_;
  Metadata<Pages> metadata_;
  Cache* first_ = nullptr;
  typename A::template atomic<std::uint64_t> threads_{0};  // written under the lock
  std::uint64_t peak_threads_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint32_t left_ids_[Config::kShards]{};  // id of the thread that ended last on each CPU: the next one finds its spans
  const typename Cache::Slow* slow_calls_ = nullptr;
  FreeSpans<A, Config>& spans_;
  ThreadIds<A>& ids_;
  sync::ChangeCount<A> changes_;  // changes of the list, and of what ended threads had counted
  std::uint64_t past_remote_frees_ = 0;
  PerClass<std::uint64_t, Classes::kCount> past_refills_, past_drains_;
};

}  // namespace freehold::alloc
