// SPDX-License-Identifier: MIT
// The slow path of free: a thread's array is full, or a free is one of its first. Drain gives the older half back, grouped
// by word. Each step calls those that are indented below it, and returns.
//
//   slot(c)                             the array of class c is full, or this is one of its first frees
//     push_looked_at                      one of the first frees, or
//     grow, push_looked_at                it doubles, or
//     give_oldest                         its older half goes back
//       SlotReturns::give_back
//         ArenaSlots::give_slots
//           group_slots                         from addresses to bits of words
//           WordPool::put                       one fetch_add for each word
//             announce                            the word was empty: its summary, and the tree of the span's class
//           note_full                           the word is full: if all words of the span are, it may be reclaimed
//           add_drained                         the span's pages are worth a look
//         report                              every 64 KiB: tells the budget
//           relieve                             free memory beyond the budget goes back to the system, in a bounded step
//
//   Invariant: a slot that is given to it is in the array or in the bitmap when it returns, unless it was misuse.
//
// The cache's owner calls slot() and make_room(), any thread give_batch().
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "freehold/alloc/front/slot_returns.hpp"
#include "freehold/alloc/spans/block_map.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Drain {
 public:
  using Classes = typename Config::Classes;
  using Returns = SlotReturns<A, Config, Pages, Clock>;
  using Cache = typename Returns::Cache;
  using ArenaType = typename Returns::ArenaType;
  using Arrays = CacheArrays<A, Config, Pages>;
  using Blocks = BlockMap<A, Config, Pages>;
  using ReliefType = Relief<A, Config, Pages, Clock>;

  constexpr Drain(ArenaType& arena, const Blocks& blocks, Arrays& arrays, ReliefType& relief, Returns& returns) noexcept
      : arena_(arena), blocks_(blocks), arrays_(arrays), relief_(relief), returns_(returns) {}

  // Takes a slot of class c that push() had no room for.
  void slot(Cache& cache, SizeClass c, void* slot) noexcept {
    auto& bin = cache.bins[c];
    bin.active = true;
    if (bin.looks != 0 && cache.entries(c) < bin.capacity) return push_looked_at(cache, c, slot);
    bin.drains.store(bin.drains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    returns_.count_slow_call(cache);
    if (!bin.is_grown || (bin.can_burst && std::exchange(bin.is_refilled, false) && bin.may_keep)) [[unlikely]] {
      if (arrays_.grow(cache, c)) return push_looked_at(cache, c, slot);
      if (bin.capacity == 0) return returns_.give_back(cache, c, &slot, 1);
    }
    if (cache.top[c] == cache.limit[c]) [[likely]]
      give_oldest(cache, c);
    *cache.top[c]++ = slot;
  }
  // Makes room for one entry in a bin that is full or has no array yet; its entries may be slots only.
  void make_room(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    bin.active = true;
    if (cache.entries(c) == bin.capacity && (bin.is_grown || !arrays_.grow(cache, c)) && bin.capacity != 0)
      give_oldest(cache, c);
    if (bin.capacity == 0) return;
    bin.looks = 0;
    cache.limit[c] = bin.array + 1 + bin.capacity;
  }
  // Gives n <= kMaxBatch slots back that are in no thread's cache.
  void give_batch(SizeClass c, void* const* slots, std::size_t n) noexcept {
    pool::WordIndex last = 0;
    (void)arena_.slots().give_slots(c, slots, n, last, 0);
    const std::uint64_t now = Clock::now();
    if (arena_.report_slots(-static_cast<std::int64_t>(n * Classes::slot_bytes(c)))) relief_.relieve(nullptr, 0);
    relief_.tick(now);
  }

 private:
  // The older half of a full bin, or as much as a free may take the time for.
  void give_oldest(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    const std::size_t n = bin.capacity, oldest = std::min((n + 1) / 2, 2 * pool::kMaxBatch);
    for (std::size_t i = 0; i < oldest; i += pool::kMaxBatch)
      returns_.give_back(cache, c, bin.array + 1 + i, std::min(oldest - i, pool::kMaxBatch));
    std::memmove(bin.array + 1, bin.array + 1 + oldest, (n - oldest) * sizeof(void*));
    cache.top[c] -= oldest;
  }
  // Checks the first frees of an array, and those at which it grows: that reports a double free, or one of a wrong address,
  // early. Pre: there is room.
  [[gnu::noinline]] void push_looked_at(Cache& cache, SizeClass c, void* slot) noexcept {
    auto& bin = cache.bins[c];
    if (bin.looks != 0) --bin.looks;
    cache.limit[c] = bin.looks != 0 ? cache.top[c] + 1 : bin.array + 1 + bin.capacity;
    const BlockPlace place = blocks_.block_around(slot);
    if (place.start != slot) return base::fatal(base::HeapError::kInteriorPointer, slot);
    if (!place.in_use || std::find(bin.array + 1, cache.top[c], slot) != cache.top[c])
      return base::fatal(base::HeapError::kDoubleFree, slot);
    (void)cache.push(c, slot);
  }

  ArenaType& arena_;
  const Blocks& blocks_;
  Arrays& arrays_;
  ReliefType& relief_;
  Returns& returns_;
};

}  // namespace freehold::alloc
