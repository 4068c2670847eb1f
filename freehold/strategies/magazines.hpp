// SPDX-License-Identifier: MIT
// Thread-cached magazines over a shared depot (Bonwick and Adams, "Magazines and Vmem", 2001). A magazine is a small stack
// of slots. A thread has two, the loaded one and the previous one, and trades a full one for an empty one, or the reverse,
// with the depot when neither helps: so at least `rounds` operations pass between two visits, whatever their order.
//
//   Invariants: a free slot lies in a magazine of a thread or of the depot. The depot has ceil(slots / rounds_) magazines,
//   in its list of full ones, its list of empty ones, or its one partial magazine: threads bring two of their own and trade
//   one for one. So a thread that brings a full one, or one slot, finds an empty one: the depot holds too few slots for all of its
//   magazines to be full.
//
// A thread that ends pours its slots into the depot. A thread without magazines (thread_caches.hpp) takes single slots from
// there, and brings them.
//
// Linearisation: in the thread alone, or within the depot's lock. Any thread; blocks in the depot only. Slots in other
// threads' magazines are not found: 2 * rounds for each at most, an eighth of the pool (or 2 slots). Cost: a thread-local
// look-up and a push or pop on the thread's own lines; the depot's lock every `rounds` operations. Bookkeeping: 8 bytes a
// slot and 16 a magazine; two magazines of 512 bytes a thread.
#pragma once
#include <algorithm>
#include <cstddef>

#include "freehold/base/bits.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/strategies/home.hpp"
#include "freehold/strategies/pool_lock.hpp"
#include "freehold/strategies/thread_caches.hpp"

namespace freehold::pool {

// Used by one thread at a time: the one that has it, or that holds the depot's lock.
template <sync::Atomics A>
class Magazine {
 public:
  static constexpr unsigned kMaxRounds = 62;

  [[nodiscard]] unsigned count() const noexcept { return count_.load(); }
  void push(void* slot) noexcept {
    const unsigned n = count_.load();
    rounds_[n].store(slot);
    count_.store(n + 1);
  }
  // Pre: not empty.
  [[nodiscard]] void* pop() noexcept {
    const unsigned n = count_.load() - 1;
    count_.store(n);
    return rounds_[n].load();
  }

  typename A::template var<Magazine*> next;  // in a list of the depot

 private:
  typename A::template var<unsigned> count_;
  typename A::template var<void*> rounds_[kMaxRounds];
};
static_assert(sizeof(Magazine<sync::NativeAtomics>) == 64 * sizeof(void*));

template <sync::Atomics A, class Contention, PoolLockOrders O>
class MagazinesPool {
 public:
  [[gnu::visibility("hidden")]] explicit MagazinesPool(const PoolShape& shape)
      : slots_(shape),
        rounds_(static_cast<unsigned>(std::clamp<std::size_t>(shape.slots / 16, 1, Magazine<A>::kMaxRounds))),
        magazines_(base::ceil_div(shape.slots, rounds_)) {
    for (std::size_t i = magazines_.size(); i-- > 0;) put_into(empty_, &magazines_[i]);
    partial_.store(take_from(empty_));
    for (std::size_t slot = shape.slots; slot-- > 0;) put_one(slots_.address(slot));
  }

  // Inlined, so that each shared object asks is_here() with its own code (home.hpp).
  [[nodiscard, gnu::always_inline]] inline void* acquire() noexcept {
    Cache* const cache = caches_.mine();
    if (cache == nullptr && !home_.is_here()) [[unlikely]]
      return home_.acquire(*this);
    contention_.operated();
    if (cache == nullptr) [[unlikely]]
      return acquire_slow(caches_.make());
    Magazine<A>* const loaded = cache->loaded.load();
    if (loaded->count() == 0) [[unlikely]]
      return acquire_slow(cache);
    return slots_.hand_out_at(loaded->pop());
  }

  [[gnu::always_inline]] inline void release(void* slot) noexcept {
    Cache* const cache = caches_.mine();
    if (cache == nullptr && !home_.is_here()) [[unlikely]]
      return home_.release(*this, slot);
    if (!slots_.take_back_at(slot)) return;
    contention_.operated();
    if (cache == nullptr) [[unlikely]]
      return release_slow(caches_.make(), slot);
    Magazine<A>* const loaded = cache->loaded.load();
    if (loaded->count() == rounds_) [[unlikely]]
      return release_slow(cache, slot);
    loaded->push(slot);
  }

  // Gives back what the calling thread's magazines hold.
  void flush() noexcept {
    if (Cache* const cache = caches_.mine(); cache != nullptr) drain(*cache);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  struct Cache {
    Magazine<A> own[2];  // until they are traded
    typename A::template var<Magazine<A>*> loaded{&own[0]};
    typename A::template var<Magazine<A>*> previous{&own[1]};
  };
  using Caches = ThreadCaches<A, MagazinesPool, Cache, O>;
  friend Caches;
  using List = typename A::template var<Magazine<A>*>;

  // The thread has no loaded magazine, or an empty one.
  [[gnu::noinline]] void* acquire_slow(Cache* cache) noexcept {
    void* slot = nullptr;
    if (cache == nullptr) {
      const PoolGuard guard(lock_, contention_);
      slot = take_one();
    } else {
      if (cache->loaded.load()->count() == 0) swap(*cache);
      if (cache->loaded.load()->count() == 0) load_full(*cache);
      if (cache->loaded.load()->count() != 0) slot = cache->loaded.load()->pop();
    }
    return slot == nullptr ? nullptr : slots_.hand_out_at(slot);
  }

  // The thread has no loaded magazine, or a full one.
  [[gnu::noinline]] void release_slow(Cache* cache, void* slot) noexcept {
    if (cache == nullptr) {
      const PoolGuard guard(lock_, contention_);
      return put_one(slot);
    }
    if (cache->loaded.load()->count() == rounds_) swap(*cache);
    if (cache->loaded.load()->count() == rounds_) load_empty(*cache);
    cache->loaded.load()->push(slot);
  }

  void drain(Cache& cache) noexcept {
    const PoolGuard guard(lock_, contention_);
    for (Magazine<A>* magazine : {cache.loaded.load(), cache.previous.load()})
      while (magazine->count() != 0) put_one(magazine->pop());
  }

  static void swap(Cache& cache) noexcept {
    Magazine<A>* const loaded = cache.loaded.load();
    cache.loaded.store(cache.previous.load());
    cache.previous.store(loaded);
  }

  // ---- the depot, under its lock except in the constructor

  static void put_into(List& list, Magazine<A>* magazine) noexcept {
    magazine->next.store(list.load());
    list.store(magazine);
  }
  // Null: none.
  [[nodiscard]] static Magazine<A>* take_from(List& list) noexcept {
    Magazine<A>* const magazine = list.load();
    if (magazine != nullptr) list.store(magazine->next.load());
    return magazine;
  }

  // Trades the empty loaded magazine for one with slots, if there is any.
  void load_full(Cache& cache) noexcept {
    const PoolGuard guard(lock_, contention_);
    Magazine<A>* const empty = cache.loaded.load();
    if (Magazine<A>* const full = take_from(full_); full != nullptr) {
      put_into(empty_, empty);
      cache.loaded.store(full);
    } else if (partial_.load()->count() != 0) {
      cache.loaded.store(partial_.load());
      partial_.store(empty);
    }
  }
  // Trades the full loaded magazine for an empty one.
  void load_empty(Cache& cache) noexcept {
    const PoolGuard guard(lock_, contention_);
    put_into(full_, cache.loaded.load());
    cache.loaded.store(take_from(empty_));
  }

  [[nodiscard]] void* take_one() noexcept {
    Magazine<A>* partial = partial_.load();
    if (partial->count() == 0) {
      Magazine<A>* const full = take_from(full_);
      if (full == nullptr) return nullptr;
      put_into(empty_, partial);
      partial_.store(partial = full);
    }
    return partial->pop();
  }
  void put_one(void* slot) noexcept {
    if (partial_.load()->count() == rounds_) {
      put_into(full_, partial_.load());
      partial_.store(take_from(empty_));
    }
    partial_.load()->push(slot);
  }

  // Written by the constructor only.
  Home<A, MagazinesPool> home_;
  Slots slots_;
  unsigned rounds_;  // rounds of a magazine
  ZeroedArray<Magazine<A>> magazines_;
  // Under the lock.
  alignas(base::kCacheLine) PoolLock<A, O> lock_;
  List full_{nullptr};
  List empty_{nullptr};
  List partial_{nullptr};
  // Any thread.
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
  alignas(base::kCacheLine) Caches caches_{*this};
};

/// Two small stacks for each thread, which it trades with a depot. It does not find the slots of other threads.
struct Magazines {
  static constexpr std::string_view kName = "magazines";
  static constexpr bool kFindsLast = false;
  static constexpr double kBookkeepingBytes = 9;
  static constexpr PoolLockOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, PoolLockOrders O = kOrders>
  using Pool = MagazinesPool<A, Contention, O>;
};

}  // namespace freehold::pool
