// SPDX-License-Identifier: MIT
// Where a thread finds its array of free slots of a pool: a table in thread-local storage, indexed by the pool's place. Zero
// bytes are an array that is empty and full at once, so that neither fast path asks whether there is one yet.
//
//   Invariant: an entry of a thread's table is all zero, or its cache points back to it and is in the list of its pool,
//   which `pool` names. Entry 0 belongs to no pool and stays zero: the place of pools that have none (thread_places.hpp).
//
// Templates are compiled into each shared object (program or library) that uses them, and each has its own tables: those
// of a pool are those of the shared object that made it. So two pools of different ones may have the same place: the fast
// paths compare `pool`. Code that reaches a table is of hidden visibility or always inlined: the linker cannot replace it by
// that of another shared object.
//
// An entry belongs to its thread. A thief reads `top` and raises `bottom` (best_pool_arrays.hpp), and the end of the pool
// clears the entry.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

// The table's entry for a pool's cache: how to end it with its thread.
struct ThreadCacheBase {
  void (*leave)(ThreadCacheBase*) noexcept = nullptr;
};

template <sync::Atomics A>
class ThreadArrays {
 public:
  static constexpr std::size_t kPlaces = 128;

  using Entry = typename A::template var<void*>;

  // An array ends at a multiple of this, and nowhere else is one of its tops such a multiple: "full" needs no look at
  // memory.
  static constexpr std::intptr_t kBytes = 1024;
  [[nodiscard, gnu::always_inline]] static constexpr bool is_end(std::intptr_t top) noexcept {
    return (top & (kBytes - 1)) == 0;
  }

  // Addresses as signed numbers: below the start of the zero array lies -8, which is less than its bottom.
  struct Array {
    // relaxed always: what is compared with it is the caller's own pool, and that can only have been written by the caller's
    // own thread. A native atomic under the simulator, too: no thread learns anything from another's.
    std::atomic<const void*> pool{nullptr};
    typename A::template atomic<std::intptr_t> top{0};     // one past the newest entry; owner writes
    typename A::template atomic<std::intptr_t> bottom{0};  // the oldest entry; owner in its slow path, or thief
    ThreadCacheBase* cache = nullptr;

    void clear() noexcept {
      top.store(0, std::memory_order_relaxed);
      bottom.store(0, std::memory_order_relaxed);
      pool.store(nullptr, std::memory_order_relaxed);
      cache = nullptr;
    }
    [[nodiscard, gnu::always_inline]] bool is_of(const void* other) const noexcept {
      return pool.load(std::memory_order_relaxed) == other;
    }
  };

  // An index into the table, times the size of an array: saves the fast paths a shift.
  enum class Place : std::size_t { kNone = 0 };

  [[nodiscard, gnu::always_inline]] static Array& mine(Place place) noexcept {
    return *reinterpret_cast<Array*>(reinterpret_cast<std::byte*>(A::template per_thread<Table>().arrays) +
                                     static_cast<std::size_t>(place));
  }

  [[nodiscard]] static Entry* entry(std::intptr_t address) noexcept { return reinterpret_cast<Entry*>(address); }

 protected:
  struct Further;  // an array of a pool without a place
  static constexpr std::size_t kBuckets = 32;
  struct Table {
    Array arrays[kPlaces];
    Further* further[kBuckets];
    bool ended;
  };
};

}  // namespace freehold::pool
