// SPDX-License-Identifier: MIT
// The places of pools in the threads' tables (thread_arrays.hpp), and arrays of pools that have none: these are found by a
// hash of the pool's address. With more than 127 pools alive, a pair of acquire and release costs some 8 ns more, and where
// very many of them are used in turn, a look at each that hashes alike.
//
// Places: any thread, under their lock, when pools come and go.
// The lock ranks before the pools' own locks: thread exit and the pools' destruction take it to keep each other out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/pool/thread_arrays.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

template <sync::Atomics A>
class ThreadPlaces : public ThreadArrays<A> {
  using Base = ThreadArrays<A>;
  using Base::kBuckets;
  using typename Base::Further;
  using typename Base::Table;

 public:
  using Base::kPlaces;
  using Base::mine;
  using typename Base::Array;
  using typename Base::Entry;
  using typename Base::Place;

  // Above every address: an array whose bottom is raised looks empty.
  static constexpr std::intptr_t kRaised = std::numeric_limits<std::intptr_t>::max();

  [[nodiscard]] static std::intptr_t address(const Entry* entry) noexcept { return reinterpret_cast<std::intptr_t>(entry); }
  // Natively an entry is a pointer and nothing else: whole arrays can be filled, read and moved as such.
  static constexpr bool kPlain = std::is_same_v<A, sync::NativeAtomics>;
  [[nodiscard]] static void** plain(Entry* entries) noexcept
    requires kPlain
  {
    static_assert(sizeof(Entry) == sizeof(void*) && std::is_standard_layout_v<Entry>);
    return reinterpret_cast<void**>(entries);
  }
  [[nodiscard]] static std::size_t entries(const Array& array) noexcept {
    // relaxed: the owner, or at rest
    const std::intptr_t bytes = array.top.load(std::memory_order_relaxed) - array.bottom.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(bytes) / sizeof(Entry);
  }

  // The calling thread's array of a pool without a place; null: it has none.
  [[nodiscard, gnu::visibility("hidden")]] static Array* further(const void* pool) noexcept {
    Further*& first = bucket(pool);
    for (Further** link = &first; *link != nullptr; link = &(*link)->next) {
      if (!(*link)->is_of(pool)) continue;
      // Moves it to the front: a pool that is used again is found at once, however many there are. The chain is this
      // thread's own.
      Further* const found = std::exchange(*link, (*link)->next);
      found->next = std::exchange(first, found);
      return found;
    }
    return nullptr;
  }
  // How many arrays further() would look at; for tests.
  [[nodiscard, gnu::visibility("hidden")]] static std::size_t steps_to(const void* pool) noexcept {
    std::size_t steps = 0;
    for (const Further* each = bucket(pool); each != nullptr; each = each->next) {
      ++steps;
      if (each->is_of(pool)) break;
    }
    return steps;
  }
  // An array that the calling thread may use for the pool, at its place or, without one, elsewhere; null: the thread is
  // ending, or memory is out. Pre: no lock is held.
  [[nodiscard, gnu::visibility("hidden")]] static Array* unused(const void* pool, Place place) noexcept {
    if (A::template per_thread<Table>().ended) return nullptr;
    if (place != Place::kNone) return &mine(place);
    const sync::Guard guard(places().lock);  // under which ended pools clear theirs
    for (Further* each = bucket(pool); each != nullptr; each = each->next)
      if (each->is_of(nullptr)) return each;
    auto* const made = new (std::nothrow) Further;
    if (made == nullptr) return nullptr;
    made->next = bucket(pool);
    bucket(pool) = made;
    return made;
  }
  // Has the calling thread's caches leave their pools when it ends.
  [[gnu::visibility("hidden")]] static void at_exit() noexcept { A::at_thread_exit(&ThreadPlaces::thread_ends); }

  // Which places are taken, in one shared object.
  struct Places {
    sync::Mutex<A> lock;
    bool taken[kPlaces];

    // A free place, or kNone.
    [[nodiscard]] Place claim() noexcept {
      const sync::Guard guard(lock);
      for (std::size_t i = 1; i < kPlaces; ++i) {
        if (taken[i]) continue;
        taken[i] = true;
        return Place{i * sizeof(Array)};
      }
      return Place::kNone;
    }
    // Pre: the lock is held; no thread's entry at `place` is in use.
    void give_up(Place place) noexcept { taken[static_cast<std::size_t>(place) / sizeof(Array)] = false; }
  };
  // Those of the shared object that asks.
  [[nodiscard, gnu::visibility("hidden")]] static Places& places() noexcept { return A::template per_process<Places>(); }

 private:
  [[nodiscard, gnu::visibility("hidden")]] static Further*& bucket(const void* pool) noexcept {
    constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;  // Knuth's multiplicative hash
    return A::template per_thread<Table>().further[(reinterpret_cast<std::uint64_t>(pool) * kGolden) >> 59];
  }
  static_assert(kBuckets == 1 << (64 - 59));

  [[gnu::visibility("hidden")]] static void thread_ends() noexcept {
    const sync::Guard guard(places().lock);
    Table& table = A::template per_thread<Table>();
    table.ended = true;
    for (Array& array : table.arrays)
      if (array.cache != nullptr) array.cache->leave(array.cache);
    for (Further*& chain : table.further) {
      while (chain != nullptr) {
        Further* const each = std::exchange(chain, chain->next);
        if (each->cache != nullptr) each->cache->leave(each->cache);
        delete each;
      }
    }
  }
};

// An array in its thread's chain; of no pool, when that has ended.
template <sync::Atomics A>
struct ThreadArrays<A>::Further : Array {
  Further* next = nullptr;
};

}  // namespace freehold::pool
