// SPDX-License-Identifier: MIT
// The work of a BestPool beside its fast paths (best_pool.hpp): arrays are filled and emptied, memory is opened, threads
// come and go, one steals from the others, and in checked mode each slot is looked at.
//
// The library has it compiled for the pools that programs use, so that they read and compile none of it. A pool on other
// atomics, as the tests have, needs this file.
//
// A pool lives in the threads' tables of its home, the shared object that constructed it (thread_arrays.hpp). Each shared
// object has a copy of this code, of hidden visibility. Calls are virtual: they reach the home's code, whoever asks.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/best_pool_arrays.hpp"
#include "freehold/pool/best_pool_words.hpp"
#include "freehold/pool/checked_slots.hpp"
#include "freehold/pool/slot_layout.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/thread_places.hpp"
#include "freehold/pool/transfer_cache.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

template <class Config>
class [[gnu::visibility("hidden")]] BestPoolWork final : public BestPoolCore<typename Config::Atomics> {
  using A = typename Config::Atomics;
  using Contention = typename Config::Contention;
  static constexpr BestPoolOrders O = Config::kOrders;
  using Fast = BestPoolFast<Config>;
  using List = BestPoolArrays<A, O, BestPoolWork>;
  friend List;
  using Arrays = typename List::Arrays;
  using Array = typename Arrays::Array;
  using Entry = typename Arrays::Entry;
  using Cache = typename List::Cache;
  using SlowPath = typename List::SlowPath;
  using Dry = typename List::Dry;
  static constexpr std::intptr_t kEntryBytes = List::kEntryBytes;
  static constexpr unsigned kMaxEntries = List::kMaxEntries;
  using Words = BestPoolWords<A>;
  using Transfer = TransferCache<A, O.transfer>;
  static constexpr unsigned kTries = 8;  // words that a refill looks at for half a batch

 public:
  // As BestPoolSlow::make(). Errors: std::bad_alloc.
  BestPoolWork(const PoolShape& shape, Growth growth, const void* pool, bool looks, Contention& contention)
      : words_(shape, growth == Growth::kGrowing),
        checked_(CheckedSlots::make(layout().room(), shape, true)),
        allocated_(looks ? layout().numbers() : 0),
        transfer_(layout().slots()),
        pool_(pool),
        contention_(contention),
        entries_(entries_for(shape, growth)),
        batch_(entries_ >= kWholeWords ? 64 : (entries_ + 1) / 2),
        looks_(looks),
        steals_(A::may_fence_heavily()) {
    // Without stealing, a pool of fixed capacity has no arrays to hide its last slots in; a growing one stops short of them.
    uses_arrays_ = !layout().watched_by_memcheck() && checked_ == nullptr && (growth == Growth::kGrowing || steals_);
    if (uses_arrays_) place_ = Arrays::places().claim();
  }
  ~BestPoolWork() override {
    if (checked_ != nullptr) {
      (void)look_at_slots();
      list_live();
    }
    auto& places = Arrays::places();
    const sync::Guard global(places.lock);
    arrays_.delete_all();
    places.give_up(place_);
  }

  // ---- threads without an array, or from another shared object

  [[nodiscard]] void* acquire() noexcept override {
    if (checked_ != nullptr) return acquire_checked();
    if (Array* const array = mine(); array != nullptr) return acquire_from(*array);
    contention_.operated();
    if (Cache* const cache = join(); cache != nullptr) return looked_at(acquire_for(*cache));
    void* const slot = acquire_directly();
    if (!looks_ && slot != nullptr && layout().watched_by_memcheck()) layout().on_allocate(slot);
    return looked_at(slot);
  }
  void release(void* slot) noexcept override {
    if (checked_ != nullptr) return release_checked(slot);
    if (looks_ && !on_free(slot)) return;
    contention_.operated();
    if (Array* const array = mine(); array != nullptr) return Fast::release(*array, slot);
    if (Cache* const cache = join(); cache != nullptr) return release_full(*cache, slot);
    if (!looks_ && layout().watched_by_memcheck()) layout().on_free(slot);
    Entry entry(slot);
    words_.expect_own(&entry, 1);
    if (!uses_arrays_) return words_.put(&slot, 1, nullptr);
    const sync::Guard guard(lock_);  // a dry pool's words are empty
    arrays_.start_all(nullptr);
    words_.put(&slot, 1, nullptr);
  }

  // ---- where every slot is looked at

  void on_allocate(void* slot) noexcept override {
    if (slot == nullptr) return;
    allocated_.on_allocate(layout().number(slot), slot);
    layout().on_allocate(slot);
  }
  [[nodiscard]] bool on_free(void* slot) noexcept override {
    if (!layout().is_slot(slot)) {
      base::fatal(layout().contains(slot) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer, slot);
      return false;
    }
    if (!allocated_.on_free(layout().number(slot), slot)) return false;
    layout().on_free(slot);
    return true;
  }

  // ---- figures, and all slots

  [[nodiscard]] typename Arrays::Place place() const noexcept override { return place_; }
  [[nodiscard]] std::size_t capacity() const noexcept override { return layout().slots(); }
  [[nodiscard]] std::size_t slot_bytes() const noexcept override { return layout().room().slot_bytes; }
  [[nodiscard]] std::size_t peak_slots() const noexcept override { return words_.opened_slots(); }
  [[nodiscard]] std::size_t free_slots() noexcept override {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    std::size_t n = transfer_.kept() + words_.free_slots() + (checked_ != nullptr ? checked_->kept() : 0);
    for (const Cache* cache = arrays_.first(); cache != nullptr; cache = cache->next)
      if (cache->array != nullptr) n += Arrays::entries(*cache->array);
    return n;
  }
  [[nodiscard]] std::uint64_t waits() const noexcept override { return lock_.waits().count(); }
  void add_to(LivePool& pool) const noexcept override { words_.add_to(pool); }
  std::size_t trim() noexcept override {
    const sync::Guard guard(lock_);
    Entry batch[Transfer::kBatch];
    while (const std::size_t n = transfer_.take(batch, contention_))
      words_.put_entries(Arrays::address(batch), Arrays::address(batch + n), nullptr);
    return words_.trim();
  }
  std::size_t look_at_slots() noexcept override {
    return checked_ == nullptr ? 0 : checked_->look_at_all([this](auto&& f) { words_.for_each_opened(f); });
  }
  [[nodiscard]] std::size_t known_live() const noexcept override { return checked_ != nullptr ? checked_->live() : 0; }
  void list_live() const noexcept override {
    if (checked_ != nullptr) checked_->list_live([this](auto&& f) { words_.for_each_opened(f); });
  }
  [[nodiscard]] bool check_invariants() noexcept override {
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    return words_.check_invariants() && arrays_.check_invariants();
  }

  // ---- slow paths of a thread with an array

  // Pre: a thread's array of a pool of this kind.
  [[nodiscard]] static Cache& cache_of(Array& array) noexcept { return *static_cast<Cache*>(array.cache); }

  [[nodiscard]] void* acquire_for(Cache& cache) noexcept {
    switch (arrays_.look_while_dry(cache)) {
      case Dry::kNothing: return nullptr;
      case Dry::kSomething: return acquire_last(&cache);
      case Dry::kIsNot: break;
    }
    if (void* const slot = refill(cache); slot != nullptr) return slot;
    return acquire_last(&cache);
  }

  void release_full(Cache& cache, void* slot) noexcept {
    if (arrays_.push_stopped(lock_, cache, slot)) return;
    const SlowPath mark(arrays_, lock_, cache);
    Array& array = *cache.array;
    std::intptr_t top = array.top.load(std::memory_order_relaxed);
    const std::intptr_t bottom = array.bottom.load(std::memory_order_relaxed);
    if (Arrays::is_end(top)) {
      // Entries that a thief took have left room below; else the older half goes back.
      std::intptr_t keep = bottom;
      if (bottom == cache.start()) {
        const std::size_t n = batch_;
        words_.expect_own(cache.first(), n);
        if (!words_.are_scattered(cache.first(), n) || !transfer_.put(cache.first(), n, contention_))
          words_.put_entries(bottom, bottom + static_cast<std::intptr_t>(n) * kEntryBytes, &cache.cursor);
        keep = bottom + static_cast<std::intptr_t>(n * sizeof(Entry));
      }
      top = List::move_down(keep, top, cache.start());
      array.bottom.store(cache.start(), std::memory_order_relaxed);
    }
    Arrays::entry(top)->store(slot);
    array.top.store(top + kEntryBytes, O.owner_sets_top);
  }

 private:
  // Arrays of so many entries trade whole words, which costs least; a refill that begins with half a batch must fit, too.
  static constexpr unsigned kWholeWords = 96;
  static_assert(kMaxEntries >= kWholeWords && Transfer::kBatch >= 64);

  [[nodiscard]] const SlotLayout& layout() const noexcept { return words_.layout(); }

  static unsigned entries_for(const PoolShape& shape, Growth growth) noexcept {
    constexpr std::size_t kMaxBytes = 64 * 1024;
    std::size_t n = std::min<std::size_t>(kMaxEntries, std::max<std::size_t>(kMaxBytes / shape.slot_bytes, 1));
    if (growth == Growth::kFixed) n = std::min(n, std::max<std::size_t>(shape.slots / 8, 1));
    return static_cast<unsigned>(n);
  }

  // The calling thread's array in the tables of the pool's home; null: it has none.
  [[nodiscard]] Array* mine() const noexcept {
    if (place_ == Arrays::Place::kNone) return Arrays::further(pool_);
    Array& array = Arrays::mine(place_);
    return array.is_of(pool_) ? &array : nullptr;
  }
  [[nodiscard]] void* looked_at(void* slot) noexcept {
    if (looks_) on_allocate(slot);
    return slot;
  }
  [[nodiscard]] void* acquire_from(Array& array) noexcept {
    contention_.operated();
    return looked_at(Fast::acquire(array));
  }

  // Null: nothing was found, or a thief is about, and the lock is to be asked for.
  [[nodiscard]] void* refill(Cache& cache) noexcept {
    const SlowPath mark(cache);
    if (!mark) return nullptr;
    if (void* const slot = List::pop(cache); slot != nullptr) return slot;  // a thief had raised bottom, and left
    if (const std::size_t n = transfer_.take(cache.first(), contention_); n != 0) return List::fill(cache, 0, n);
    // Half a word or less makes the way here hardly worth while: a few more of them. From the top down, so that pops go
    // through memory upwards, which the CPU foresees.
    const std::size_t end = batch_ + batch_ / 2;
    std::size_t begin = end;
    for (unsigned tries = 0; (end - begin) * 2 <= batch_ && tries < kTries; ++tries) {
      const Taken taken = words_.take(cache.cursor, batch_, cache.thread_id);
      if (taken.bits == 0) break;
      begin -= static_cast<std::size_t>(std::popcount(taken.bits));
      (void)words_.list(taken, cache.first() + begin);
    }
    return List::fill(cache, begin, end);
  }

  // ---- checked mode: no thread has an array

  [[nodiscard]] void* acquire_checked() noexcept {
    contention_.operated();
    const sync::Guard guard(checked_->lock());
    void* slot = checked_->take_long_kept();
    if (slot == nullptr) slot = acquire_directly();
    if (slot == nullptr) slot = checked_->take_kept();
    return slot == nullptr ? nullptr : checked_->on_allocate(slot);
  }
  void release_checked(void* slot) noexcept {
    contention_.operated();
    const sync::Guard guard(checked_->lock());
    if (!layout().is_slot(slot))
      return base::fatal(layout().contains(slot) ? base::HeapError::kInteriorPointer : base::HeapError::kForeignPointer,
                         slot);
    if (layout().ordinal(slot) >= words_.opened_slots())  // which was never handed out
      return base::fatal(base::HeapError::kDoubleFree, slot);
    if (!checked_->on_free(slot)) return;
    if (void* const leaves = checked_->keep(slot); leaves != nullptr) words_.put(&leaves, 1, nullptr);
  }

  // Does without an array: more pools are alive than have a place, the thread is about to end, a checker watches, or memory
  // for the array is out.
  [[nodiscard]] void* acquire_directly() noexcept {
    const Taken taken = take_some(nullptr);
    return taken.bits != 0 ? settle(nullptr, taken) : acquire_last(nullptr);
  }

  // Nothing in the words: opens memory, or steals. `cache`: the caller's, if it has one; it is not in its slow path.
  [[gnu::noinline]] void* acquire_last(Cache* cache) noexcept {
    const sync::Guard guard(lock_);
    if (arrays_.is_dry()) return arrays_.take_stopped(cache);
    if (cache != nullptr)  // what was pushed while the array was stopped
      if (void* const slot = List::pop(*cache); slot != nullptr) return slot;
    // Again, since others may have opened or stolen before us. No thief is about: we hold the lock.
    void* const slot = take_kept(cache);
    if (slot != nullptr) return slot;
    Taken taken = take_some(cache);
    if (taken.bits == 0) taken = words_.open(cache != nullptr ? batch_ : 1);
    return taken.bits != 0 ? settle(cache, taken) : steal(cache);
  }

  // A batch from another thread's drain: one slot for the caller, the others into its array or to the words. Pre: the lock
  // is held.
  [[nodiscard]] void* take_kept(Cache* cache) noexcept {
    if (cache != nullptr) return List::fill(*cache, 0, transfer_.take(cache->first(), contention_));
    Entry batch[Transfer::kBatch];
    const std::size_t n = transfer_.take(batch, contention_);
    if (n == 0) return nullptr;
    words_.put_entries(Arrays::address(batch), Arrays::address(batch + n - 1), nullptr);
    return batch[n - 1].load();
  }

  [[nodiscard]] Taken take_some(Cache* cache) noexcept {
    Cursor cursor;
    const std::uint32_t thread_id = cache != nullptr ? cache->thread_id : A::thread_number() + 1;
    const Taken taken = words_.take(cursor, cache != nullptr ? batch_ : 1, thread_id);
    words_.clear_active(cursor, thread_id);
    return taken;
  }

  // One of the slots for the caller, the others into its array. Pre: the lock is held or the cache is in its slow path.
  [[nodiscard]] void* settle(Cache* cache, Taken taken) noexcept {
    if (cache == nullptr) return layout().address(taken.word, base::lowest_bit(taken.bits));
    cache->cursor.word = taken.word;
    return List::fill(*cache, 0, words_.list(taken, cache->first()));
  }

  // Empties the other threads' arrays; one slot is the caller's, the rest goes to the words. Null: at the moment when all
  // were stopped, no slot was free. They stay stopped then, unless memory might be opened later. Pre: the lock is held.
  [[nodiscard]] void* steal(Cache* mine) noexcept {
    if (!steals_) return nullptr;
    if (!arrays_.stop_others(mine)) return nullptr;
    void* slot = take_kept(mine);
    if (slot == nullptr)
      if (const Taken taken = take_some(mine); taken.bits != 0) slot = settle(mine, taken);
    const bool found = slot != nullptr;
    arrays_.for_each_other(mine, [&](Cache& cache) {
      std::intptr_t from = cache.bottom_before.load(std::memory_order_relaxed);
      const std::intptr_t top = List::top_of(cache, from);
      if (slot == nullptr && from < top) {
        slot = Arrays::entry(from)->load();
        from += kEntryBytes;
      }
      if (!found) {
        words_.put_entries(from, top, nullptr);
        from = top;
      }
      cache.bottom_before.store(from, std::memory_order_relaxed);  // relaxed: ours, under the lock
    });
    if (slot == nullptr && words_.is_all_open())
      arrays_.go_dry(mine);
    else
      arrays_.start_others(mine);
    return slot;
  }

  // ---- a thread's coming and going

  // Gives the calling thread an array of this pool, on the cache of a thread that has ended or on a new one. Null: it can
  // have none. Pre: it has none.
  [[nodiscard]] Cache* join() noexcept {
    Array* const unused = uses_arrays_ ? Arrays::unused(pool_, place_) : nullptr;
    if (unused == nullptr) return nullptr;
    Array& array = *unused;
    const sync::Guard guard(lock_);
    arrays_.start_all(nullptr);
    Cache* const cache = arrays_.unused(*this);
    if (cache == nullptr) return nullptr;
    cache->array = &array;
    cache->capacity = entries_;
    cache->thread_id = A::thread_number() + 1;
    array.cache = cache;
    array.pool.store(pool_, std::memory_order_relaxed);
    array.bottom.store(cache->start(), std::memory_order_relaxed);  // relaxed: thieves read it after our slow paths
    array.top.store(cache->start(), std::memory_order_relaxed);
    Arrays::at_exit();
    return cache;
  }

  // The owner's end: its slots go back to the words.
  void leave(Cache& cache) noexcept {
    const sync::Guard guard(lock_);
    arrays_.start_all(&cache);
    Array& array = *cache.array;
    words_.put_entries(array.bottom.load(std::memory_order_relaxed), array.top.load(std::memory_order_relaxed), nullptr);
    words_.clear_active(cache.cursor, cache.thread_id);
    cache.array = nullptr;
    array.clear();
  }

  // Written by the constructor only.
  typename Arrays::Place place_{};
  Words words_;
  std::unique_ptr<CheckedSlots> checked_;  // null but in checked mode
  AllocatedSlots allocated_;
  Transfer transfer_;
  const void* pool_;  // its address in the threads' arrays
  Contention& contention_;
  unsigned entries_;
  unsigned batch_;
  bool uses_arrays_ = false;
  bool looks_;   // at each slot
  bool steals_;  // the kernel has membarrier
  // Slow paths, under the lock.
  alignas(base::kCacheLine) sync::Mutex<A, sync::CountWaits<A>> lock_;
  List arrays_;
};

template <class Config>
BestPoolCore<typename Config::Atomics>* BestPoolSlow<Config>::make(const PoolShape& shape, Growth growth, const void* pool,
                                                                   bool looks,
                                                                   typename Config::Contention& contention) noexcept {
#if defined(__cpp_exceptions)
  try {
    return new BestPoolWork<Config>(shape, growth, pool, looks, contention);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
#else  // a program that has it compiled for its sanitizer
  return new BestPoolWork<Config>(shape, growth, pool, looks, contention);
#endif
}

template <class Config>
[[gnu::noinline]] void* BestPoolSlow<Config>::acquire(Array& array) noexcept {
  constexpr std::intptr_t kEntryBytes = BestPoolFast<Config>::kEntryBytes;
  array.top.store(array.top.load(std::memory_order_relaxed) + kEntryBytes, Config::kOrders.owner_sets_top);
  auto& cache = BestPoolWork<Config>::cache_of(array);
  return cache.pool->acquire_for(cache);
}

template <class Config>
[[gnu::noinline]] void BestPoolSlow<Config>::release(Array& array, void* slot) noexcept {
  auto& cache = BestPoolWork<Config>::cache_of(array);
  cache.pool->release_full(cache, slot);
}

}  // namespace freehold::pool
