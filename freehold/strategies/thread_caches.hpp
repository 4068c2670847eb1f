// SPDX-License-Identifier: MIT
// The caches that a pool keeps for its threads: one Cache a thread, found through a thread-local table, drained and left for
// another thread when its thread ends.
//
// Each pool has a number, below kPools, that no other living pool has, and a generation that no other pool ever has. A
// thread's table has an entry for each number; an entry of another generation belongs to a pool that is no more, and is
// taken over without asking. A pool that finds no number left, and a thread whose end has begun, get no cache: their pool
// has a slow path for that.
//
//   Invariant: an entry {generation, cache} with the generation of a living pool points to a cache of that pool that no
//   other thread uses. Every cache of a pool is in its list of all, and in its list of idle ones unless a thread has it.
//
// A thread's end and a pool's may coincide: both take the directory's lock. A thread that waits there holds no lock of a
// pool. mine(): any thread; two loads of a line that is never written, two of the thread's own. make(), leave(): once a
// thread and pool; a lock. Memory: kPools * 16 bytes a thread; a Cache for each thread that was busy at the same time.
#pragma once
#include <concepts>
#include <cstdint>
#include <new>
#include <utility>

#include "freehold/strategies/pool_lock.hpp"
#include "freehold/sync/atomics.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/sync/policies.hpp"

namespace freehold::pool {

// The living pools that keep something for threads.
class PoolDirectory {
 public:
  static constexpr unsigned kPools = 64;  // numbers; as a number: none
  using Leave = void (*)(void* pool, void* cache) noexcept;

  // That of the shared object that asks.
  [[nodiscard, gnu::visibility("hidden")]] static PoolDirectory& here() noexcept {
    return sync::NativeAtomics::per_process<PoolDirectory>();
  }

  struct Place {
    unsigned number = kPools;
    std::uint64_t generation = 0;
  };

  // Enters a pool. Every place is different from all that were given before.
  [[nodiscard]] Place enter(void* pool, Leave on_end) noexcept {
    const sync::Guard guard(mutex_);
    for (unsigned i = 0; i < kPools; ++i) {
      if (entries_[i].generation != 0) continue;
      entries_[i] = Entry{next_generation(), pool, on_end};
      return {i, entries_[i].generation};
    }
    return {kPools, next_generation()};
  }

  // Returns when no thread's end has to do with the pool any more.
  void remove(Place place) noexcept {
    if (place.number == kPools) return;
    const sync::Guard guard(mutex_);
    entries_[place.number] = Entry{};
  }

  // Calls the pool's function for a cache of a thread that ends, if the pool lives, which it does until this returns.
  void leave(Place place, void* cache) noexcept {
    const sync::Guard guard(mutex_);
    leave_unguarded(place, cache);
  }
  // The same where pools outlive threads: those of models, whose threads may not wait for a lock that is not simulated.
  void leave_unguarded(Place place, void* cache) noexcept {
    const Entry& entry = entries_[place.number];
    if (entry.generation == place.generation) entry.leave(entry.pool, cache);
  }

 private:
  struct Entry {
    std::uint64_t generation;  // 0: unused
    void* pool;
    Leave leave;
  };

  // Different in all directories, as those lie in different pages: 2^29 pools of each have a generation of their own.
  [[nodiscard]] std::uint64_t next_generation() noexcept {
    return (reinterpret_cast<std::uint64_t>(this) >> 12 << 29) + ++generations_;
  }

  sync::Mutex<sync::NativeAtomics> mutex_;
  // Under the lock.
  std::uint64_t generations_ = 0;
  Entry entries_[kPools]{};
};

// A thread's entries, one for each number.
template <sync::Atomics A>
struct ThreadTable {
  struct Entry {
    std::uint64_t generation;
    void* cache;
  };
  Entry entries[PoolDirectory::kPools + 1];  // the last: of the pools without a number, always empty
  bool ended;

  [[nodiscard, gnu::visibility("hidden")]] static ThreadTable& mine() noexcept {
    return A::template per_thread<ThreadTable>();
  }

  // Gives a thread's caches back to their pools at its end.
  [[gnu::visibility("hidden")]] static void thread_ends() noexcept {
    ThreadTable& table = mine();
    table.ended = true;
    for (unsigned i = 0; i < PoolDirectory::kPools; ++i) {
      const Entry entry = std::exchange(table.entries[i], Entry{});
      if (entry.generation == 0) continue;
      if constexpr (std::same_as<A, sync::NativeAtomics>)
        PoolDirectory::here().leave({i, entry.generation}, entry.cache);
      else
        PoolDirectory::here().leave_unguarded({i, entry.generation}, entry.cache);
    }
  }
};

// P has: void drain(Cache&) noexcept, which gives back what a cache holds. As a member of P it stands last, so that it is
// destroyed first.
template <sync::Atomics A, class P, class Cache, PoolLockOrders O>
class ThreadCaches {
 public:
  [[gnu::visibility("hidden")]] explicit ThreadCaches(P& pool) noexcept
      : pool_(pool), directory_(PoolDirectory::here()), place_(directory_.enter(this, &ThreadCaches::leave)) {}
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
  ~ThreadCaches() {
    directory_.remove(place_);
    while (all_ != nullptr) delete std::exchange(all_, all_->older);
  }

  // The calling thread's; null: it has none.
  [[nodiscard, gnu::visibility("hidden")]] Cache* mine() const noexcept {
    const auto& entry = ThreadTable<A>::mine().entries[place_.number];
    return entry.generation == place_.generation ? static_cast<Cache*>(static_cast<Owned*>(entry.cache)) : nullptr;
  }

  // Gets the calling thread one; null: it can have none. Pre: mine() is null.
  [[nodiscard, gnu::noinline, gnu::visibility("hidden")]] Cache* make() noexcept {
    ThreadTable<A>& table = ThreadTable<A>::mine();
    if (place_.number == PoolDirectory::kPools || table.ended) return nullptr;
    Owned* const cache = idle_or_new();
    if (cache == nullptr) return nullptr;
    table.entries[place_.number] = {place_.generation, cache};
    A::at_thread_exit(&ThreadTable<A>::thread_ends);
    return cache;
  }

 private:
  struct Owned : Cache {
    Owned* older = nullptr;                          // in the list of all
    typename A::template var<Owned*> next{nullptr};  // in the list of idle ones
  };

  [[nodiscard]] Owned* idle_or_new() noexcept {
    sync::IgnoreContention ignore;
    const PoolGuard guard(lock_, ignore);
    if (Owned* const cache = idle_.load(); cache != nullptr) {
      idle_.store(cache->next.load());
      return cache;
    }
    auto* const cache = new (std::nothrow) Owned;
    if (cache != nullptr) cache->older = std::exchange(all_, cache);
    return cache;
  }

  // The end of a thread that has `cache` of this pool.
  static void leave(void* caches, void* cache) noexcept {
    auto& self = *static_cast<ThreadCaches*>(caches);
    auto* const owned = static_cast<Owned*>(cache);
    self.pool_.drain(*owned);
    sync::IgnoreContention ignore;
    const PoolGuard guard(self.lock_, ignore);
    owned->next.store(self.idle_.load());
    self.idle_.store(owned);
  }

  // Written by the constructor only.
  P& pool_;
  PoolDirectory& directory_;
  PoolDirectory::Place place_;
  // Under the lock.
  PoolLock<A, O> lock_;
  typename A::template var<Owned*> idle_{nullptr};
  // The same, but plain: the destructor must find every cache at whatever step a simulated execution ends.
  Owned* all_ = nullptr;
};

}  // namespace freehold::pool
