// SPDX-License-Identifier: MIT
// The threads' arrays of one BestPool: where each begins and ends, and how another thread takes from them.
//
// A thread's array is a stack of free slots between `bottom` and `top` that its owner pushes and pops by plain stores. A
// thread that finds no slot elsewhere steals: it takes the pool's lock, raises `stealing` at every other array, waits for
// owners that are in their slow path, sets each `bottom` beyond its top and fences heavily. From then on an owner's pop,
// which has stored its new top before it looks at bottom, either shows in `top`, or sees the raised bottom and goes to the
// slow path, where it waits. That is Dekker's protocol with the fence on one side only (membarrier): the fast path pays for
// it with a compare that it needs anyhow.
//
// A thief that found nothing leaves every array stopped, its own, too: the pool is *dry*. Owners may still push, but pop
// only under the lock, so that a stopped array only grows: as long as each top stands where it stood, no slot is free, and
// an acquire answers null after a look at the tops. Slots that were pushed are taken from a stopped array under the lock,
// without a fence. The arrays are started again when an owner needs its array (to pop for the 16th time in a row, or because
// it is full), and when a thread joins or ends.
//
//   Invariants: start <= bottom <= top <= end for each array, at rest; the entries in [bottom, top) are free slots.
//               dry_ is odd  <=>  every array is stopped; then the pool's words and batches are empty, the entries in
//               [bottom_before, top) of the arrays are the only free slots, and dry_ changes before one of them is taken.
//
// Threads: `lock` is the pool's; each function says whether the caller holds it. Cost: two heavy fences to stop the arrays,
// one to start them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/thread_places.hpp"
#include "freehold/slots/word_pool.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

// `Pool`: the pool, which a cache points to.
template <sync::Atomics A, BestPoolOrders O, class Pool>
class BestPoolArrays {
 public:
  using Arrays = ThreadPlaces<A>;
  using Array = typename Arrays::Array;
  using Entry = typename Arrays::Entry;
  using Lock = sync::Mutex<A, sync::CountWaits<A>>;
  static constexpr std::intptr_t kEntryBytes = sizeof(Entry);

  // A thread's share. The array's ends lie in the thread's own storage (ThreadArrays), where the fast path finds them.
  struct Cache;
  struct CacheHead : ThreadCacheBase {
    Pool* pool = nullptr;
    Array* array = nullptr;  // under the pool's lock; null: its thread has ended
    Cache* next = nullptr;
    Cursor cursor;
    std::uint32_t thread_id = 0;
    unsigned capacity = 0;
    // A stopped array begins here; written under the pool's lock.
    typename A::template atomic<std::intptr_t> bottom_before{0};
    // Owner: it is in its slow path, or looks at stopped arrays. Thief, under the pool's lock: it wants the array.
    typename A::template atomic<std::uint32_t> in_slow_path{0};
    typename A::template atomic<std::uint32_t> stealing{0};
  };
  static constexpr unsigned kMaxEntries = (Arrays::kBytes - sizeof(CacheHead)) / sizeof(Entry);
  struct alignas(Arrays::kBytes) Cache : CacheHead {
    Entry entries[kMaxEntries];  // the last `capacity` of them

    [[nodiscard]] Entry* first() noexcept { return entries + (kMaxEntries - this->capacity); }
    [[nodiscard]] std::intptr_t start() const noexcept { return Arrays::address(entries + (kMaxEntries - this->capacity)); }
    [[nodiscard]] std::intptr_t end() const noexcept { return Arrays::address(entries + kMaxEntries); }
  };
  static_assert(sizeof(CacheHead) % sizeof(Entry) == 0 && sizeof(Cache) == Arrays::kBytes, "no room behind the last entry");

  // Keeps thieves out for as long as the owner works on its array and cursor.
  class SlowPath {
   public:
    // Tries once. False: a thief has the lock, or has left the array stopped.
    explicit SlowPath(Cache& cache) noexcept : cache_(cache), entered_(enter()) {}
    // Waits for thieves, and starts the arrays of a dry pool again.
    SlowPath(BestPoolArrays& arrays, Lock& lock, Cache& cache) noexcept : cache_(cache), entered_(true) {
      while (!enter()) {
        const sync::Guard guard(lock);
        arrays.start_all(&cache);
      }
    }
    ~SlowPath() {
      if (entered_) cache_.in_slow_path.store(0, O.owner_leaves);
    }
    SlowPath(const SlowPath&) = delete;
    SlowPath& operator=(const SlowPath&) = delete;
    explicit operator bool() const noexcept { return entered_; }

   private:
    [[nodiscard]] bool enter() noexcept {
      cache_.in_slow_path.store(1, std::memory_order_relaxed);  // relaxed: the thief's heavy fence makes it visible
      A::light_fence();
      if (cache_.stealing.load(O.owner_enters) == 0) return true;
      cache_.in_slow_path.store(0, std::memory_order_relaxed);  // relaxed: nothing was done
      return false;
    }
    Cache& cache_;
    bool entered_;
  };

  // ---- one array, by its owner in its slow path, or with the lock held and the array not stopped

  // The newest entry, or null.
  [[nodiscard]] static void* pop(Cache& cache) noexcept {
    Array& array = *cache.array;
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);
    if (top <= array.bottom.load(std::memory_order_relaxed)) return nullptr;
    array.top.store(top - kEntryBytes, O.owner_sets_top);
    return Arrays::entry(top - kEntryBytes)->load();
  }
  // The entries from `begin` to `end` are new; returns the last of them, which the caller takes; null: there was no entry.
  // Pre: the array was empty.
  [[nodiscard]] static void* fill(Cache& cache, std::size_t begin, std::size_t end) noexcept {
    if (begin == end) return nullptr;
    cache.array->bottom.store(cache.start() + static_cast<std::intptr_t>(begin) * kEntryBytes, std::memory_order_relaxed);
    cache.array->top.store(cache.start() + static_cast<std::intptr_t>(end - 1) * kEntryBytes, O.owner_sets_top);
    return cache.first()[end - 1].load();
  }
  // Moves the entries [from, top) to `to`; returns their new end.
  static std::intptr_t move_down(std::intptr_t from, std::intptr_t top, std::intptr_t to) noexcept {
    if constexpr (Arrays::kPlain) {
      std::memmove(Arrays::entry(to), Arrays::entry(from), static_cast<std::size_t>(top - from));
      return to + (top - from);
    }
    Entry* out = Arrays::entry(to);
    for (const Entry* in = Arrays::entry(from); in != Arrays::entry(top); ++in) (out++)->store(in->load());
    return Arrays::address(out);
  }

  // ---- all arrays. Pre: the lock is held. `mine`: the caller's, which is not in its slow path; null: it has none

  [[nodiscard]] Cache* first() const noexcept { return static_cast<Cache*>(caches_.load()); }
  template <class F>
  void for_each_other(const Cache* mine, F&& f) noexcept {
    for (Cache* cache = first(); cache != nullptr; cache = cache->next)
      if (cache != mine && cache->array != nullptr) f(*cache);
  }
  // A cache that no thread uses; null: memory is out. Hidden: its code must be that of the pool's home (best_pool_core.hpp).
  [[nodiscard, gnu::visibility("hidden")]] Cache* unused(Pool& pool) noexcept {
    Cache* cache = first();
    while (cache != nullptr && cache->array != nullptr) cache = cache->next;
    if (cache != nullptr) return cache;
    cache = new (std::nothrow) Cache;
    if (cache == nullptr) return nullptr;
    cache->pool = &pool;
    cache->leave = [](ThreadCacheBase* leaving) noexcept {
      auto* const its = static_cast<Cache*>(leaving);
      its->pool->leave(*its);
    };
    cache->next = first();
    caches_.store(cache);
    return cache;
  }
  // At the pool's end.
  void delete_all() noexcept {
    while (Cache* const cache = first()) {
      caches_.store(cache->next);
      if (cache->array != nullptr) cache->array->clear();
      delete cache;
    }
  }

  // Stops the other threads in all uses of their arrays except pushes. False: there is no other array.
  [[nodiscard]] bool stop_others(Cache* mine) noexcept {
    bool any = false;
    for_each_other(mine, [&](Cache& cache) {
      any = true;
      cache.stealing.store(1, std::memory_order_relaxed);  // relaxed: fenced below
    });
    if (!any) return false;
    A::heavy_fence();
    // From here on no owner enters its slow path; those that are in it come to its end.
    for_each_other(mine, [](Cache& cache) {
      sync::wait_until<A>([&] { return cache.in_slow_path.load(O.thief_waits) == 0; });
      stop(cache);
    });
    A::heavy_fence();
    // From here on no owner pops either: slots that are free stay free.
    return true;
  }
  // Ends stop_others().
  void start_others(Cache* mine) noexcept {
    for_each_other(mine, [](Cache& cache) { start(cache); });
  }
  // The top of an array that another thread stopped at `from`. An owner that has stored its new top and not yet looked at
  // bottom shows one entry less: it will be its own.
  [[nodiscard]] static std::intptr_t top_of(const Cache& cache, std::intptr_t from) noexcept {
    const std::intptr_t top = cache.array->top.load(O.thief_reads_top);
    return top < from ? from : top;
  }

  // ---- a dry pool

  enum class Dry : std::uint8_t { kIsNot, kNothing, kSomething };

  // Pre: the lock is held.
  [[nodiscard]] bool is_dry() const noexcept { return (dry_.load(std::memory_order_relaxed) & 1) != 0; }

  // Pre: the lock is held, all arrays but `mine` are stopped, and nothing is free.
  void go_dry(Cache* mine) noexcept {
    if (mine != nullptr) {
      mine->stealing.store(1, std::memory_order_relaxed);  // relaxed: it is the caller's own
      stop(*mine);
    }
    hits_.store(0, std::memory_order_relaxed);
    dry_.store(dry_.load(std::memory_order_relaxed) + 1, O.goes_dry);
  }

  // Tells whether the pool is dry, and if so whether anything came back since. No array starts or ends during the call: a
  // thread that does that waits for us. Tops of stopped arrays only grow, so that those that stand where they stood did so
  // when the first of them was looked at. Without the lock.
  [[nodiscard]] Dry look_while_dry(Cache& cache) noexcept {
    if ((dry_.load(std::memory_order_relaxed) & 1) == 0) return Dry::kIsNot;  // relaxed: a glance
    cache.in_slow_path.store(1, std::memory_order_relaxed);                   // relaxed: start_all() fences heavily
    A::light_fence();
    const std::uint64_t dry = dry_.load(O.asks_dry);
    Dry found = (dry & 1) != 0 ? Dry::kNothing : Dry::kIsNot;
    if (found == Dry::kNothing) {
      for (Cache* each = first(); each != nullptr; each = each->next) {
        const Array* const array = each->array;
        if (array == nullptr) continue;
        const std::intptr_t bottom = each->bottom_before.load(O.asks_dry);
        if (array->top.load(O.thief_reads_top) > bottom) found = Dry::kSomething;
      }
      if (dry_.load(std::memory_order_relaxed) != dry) found = Dry::kSomething;  // relaxed: see goes_dry
    }
    cache.in_slow_path.store(0, O.owner_leaves);
    // relaxed: a statistic
    if (found == Dry::kNothing && hits_.load(std::memory_order_relaxed) != 0) hits_.store(0, std::memory_order_relaxed);
    return found;
  }

  // A slot that came back since the pool went dry; null: none did. Pre: the lock is held, the pool is dry.
  [[nodiscard]] void* take_stopped(Cache* mine) noexcept {
    void* slot = mine != nullptr ? take_oldest(*mine) : nullptr;
    for_each_other(mine, [&](Cache& cache) {
      if (slot == nullptr) slot = take_oldest(cache);
    });
    if (slot == nullptr) return nullptr;
    const std::uint32_t hits = hits_.load(std::memory_order_relaxed) + 1;  // relaxed, both: a statistic
    hits_.store(hits, std::memory_order_relaxed);
    if (hits >= kHitsToStart) start_all(mine);
    return slot;
  }

  // Puts a slot into the caller's array, which is at its end, if that is stopped and something was taken from below. Takes
  // the lock.
  [[nodiscard]] bool push_stopped(Lock& lock, Cache& cache, void* slot) noexcept {
    if ((dry_.load(std::memory_order_relaxed) & 1) == 0) return false;  // relaxed: a glance
    const sync::Guard guard(lock);
    Array& array = *cache.array;
    const std::intptr_t top = array.top.load(std::memory_order_relaxed);
    const std::intptr_t bottom = cache.bottom_before.load(std::memory_order_relaxed);
    if (!is_dry() || !Arrays::is_end(top) || bottom == cache.start()) return false;
    // Its top goes back: a thread that looks now sees an entry in it, or sees that dry_ changed.
    cache.bottom_before.store(std::numeric_limits<std::intptr_t>::min(), O.goes_dry);
    change_dry();
    const std::intptr_t end = move_down(bottom, top, cache.start());
    Arrays::entry(end)->store(slot);
    array.top.store(end + kEntryBytes, O.owner_sets_top);
    cache.bottom_before.store(cache.start(), O.goes_dry);
    return true;
  }

  // Ends a dry pool's state, once no thread looks at the arrays any more. Pre: the lock is held; `mine` is not in its slow
  // path. Cost: a heavy fence, if the pool is dry.
  void start_all(const Cache* mine) noexcept {
    if (!is_dry()) return;
    dry_.store(dry_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // relaxed: fenced below
    A::heavy_fence();
    for_each_other(mine,
                   [](Cache& cache) { sync::wait_until<A>([&] { return cache.in_slow_path.load(O.thief_waits) == 0; }); });
    for_each_other(nullptr, [](Cache& cache) { start(cache); });
  }

  // The first invariant of the head. Pre: the lock is held; at rest, and not dry.
  [[nodiscard]] bool check_invariants() const noexcept {
    for (const Cache* cache = first(); cache != nullptr; cache = cache->next) {
      if (cache->array == nullptr) continue;
      const Array& array = *cache->array;
      const std::intptr_t bottom = array.bottom.load(std::memory_order_relaxed);
      const std::intptr_t top = array.top.load(std::memory_order_relaxed);
      if (cache->start() > bottom || bottom > top || top > cache->end()) return false;
    }
    return true;
  }

 private:
  // Acquires in a row that find something in a dry pool before its arrays are started again.
  static constexpr std::uint32_t kHitsToStart = 16;

  static void stop(Cache& cache) noexcept {
    cache.bottom_before.store(cache.array->bottom.load(std::memory_order_relaxed), std::memory_order_relaxed);
    cache.array->bottom.store(Arrays::kRaised, std::memory_order_relaxed);  // relaxed: fenced by the caller
  }
  static void start(Cache& cache) noexcept {
    // relaxed: the owner's pop may miss it and wait for us
    cache.array->bottom.store(cache.bottom_before.load(std::memory_order_relaxed), std::memory_order_relaxed);
    cache.stealing.store(0, O.thief_leaves);
  }
  [[nodiscard]] void* take_oldest(Cache& cache) noexcept {
    const std::intptr_t bottom = cache.bottom_before.load(std::memory_order_relaxed);
    if (cache.array->top.load(O.thief_reads_top) <= bottom) return nullptr;
    void* const slot = Arrays::entry(bottom)->load();
    change_dry();
    cache.bottom_before.store(bottom + kEntryBytes, O.goes_dry);
    return slot;
  }
  // A thread that looks at the arrays looks again. Pre: the lock is held, the pool is dry.
  void change_dry() noexcept { dry_.store(dry_.load(std::memory_order_relaxed) + 2, O.goes_dry); }

  // These change while the pool is dry, or becomes so; all except hits_ are written under the lock.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> dry_{0};  // odd: the pool is dry
  typename A::template var<void*> caches_{nullptr};     // the type Cache is hidden with the pool that it names
  typename A::template atomic<std::uint32_t> hits_{0};  // acquires that found something in the dry pool, in a row
};

}  // namespace freehold::pool
