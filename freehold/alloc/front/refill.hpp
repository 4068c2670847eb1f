// SPDX-License-Identifier: MIT
// The slow path of malloc: a thread's array is empty. Refill takes up to half an array of slots from one word of the shared
// bitmap; if no word is left, it claims a span. Each step calls those that are indented below it, and returns.
//
//   slot(c)                             the array of class c is empty
//     grow                                it doubles, if the caches' budget has room
//     ArenaSlots::take_slots_at_home      free slots of the span where the thread works
//     find
//       ArenaSlots::take_slots              free slots where the thread worked last, or where no other thread works
//         WordPool::find                      the word of the cursor; the thread's stripe of the tree; the other stripes
//           take_word                           one exchange for up to 64 slots
//         put_back, and again                 only if the span went to another class
//       SpanSource::claim                   else a new span, of which the thread gets the first word
//         span_for                            free with its pages; wholly free of another class; clean; a new chunk
//         WordPool::publish
//       drop_kept, give_cached_runs         memory is short: the same again with what these give back
//       ArenaSlots::take_slots              and at last slots in any span
//     list_slots                          from bits to addresses, into the array
//
//   Invariant: what it takes is in the array, or the caller's, when it returns, and the cache's figures have it.
//
// The cache's owner calls slot(), any thread take_batch(). Locks: those of the parts that it calls.
#pragma once
#include <bit>

#include "freehold/alloc/front/slot_returns.hpp"
#include "freehold/alloc/large/direct_blocks.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
class Refill {
 public:
  using Classes = typename Config::Classes;
  using Returns = SlotReturns<A, Config, Pages, Clock>;
  using Cache = typename Returns::Cache;
  using ArenaType = typename Returns::ArenaType;
  using Kept = typename Returns::Kept;
  using Arrays = CacheArrays<A, Config, Pages>;
  using Registry = typename Arrays::Registry;
  using Direct = DirectBlocks<A, Config, Pages>;

  constexpr Refill(ArenaType& arena, Direct& direct, Registry& registry, Kept& kept, Arrays& arrays,
                   Returns& returns) noexcept
      : arena_(arena), direct_(direct), registry_(registry), kept_(kept), arrays_(arrays), returns_(returns) {}

  // Not thread-safe. `cpus`: how many threads can run at once.
  void init(unsigned cpus) noexcept { max_foreign_spans_ = cpus; }

  // A slot of class c when pop() found none. Null: out of memory.
  [[nodiscard]] void* slot(Cache& cache, SizeClass c) noexcept {
    auto& bin = cache.bins[c];
    if (!bin.is_grown) [[unlikely]]
      (void)arrays_.grow(cache, c);
    bin.active = bin.is_refilled = true;
    const unsigned want = bin.batch;
    pool::Taken taken = arena_.slots().take_slots_at_home(c, bin.cursor, want, cache.id);
    if (taken.bits == 0) [[unlikely]] {
      registry_.follow_node(cache);
      taken = find(bin.cursor, c, want, cache.id, &cache);
    }
    if (taken.bits == 0) return nullptr;
    // Relaxed: only this thread writes it.
    bin.refills.store(bin.refills.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    returns_.count_slow_call(cache);
    const auto& geometry = arena_.geometry(c);
    if (bin.capacity <= 1) [[unlikely]] {  // as it was asked for: one slot
      returns_.report(cache, geometry.slot_bytes);
      return reinterpret_cast<void*>(geometry.address(taken.word, base::lowest_bit(taken.bits)));
    }
    void** const first = bin.array + 1;
    std::size_t n = pool::list_slots(geometry, taken, first);
    returns_.report(cache, static_cast<std::int64_t>(n * geometry.slot_bytes));
    if (n * 2 < want) n = top_up(cache, c, want, n);
    void** const top = first + n;
    cache.top[c] = top - 1;
    if (bin.looks != 0) [[unlikely]]
      cache.limit[c] = top - 1;
    return top[-1];
  }
  // Up to n <= 64 slots of one word, at least one unless out of memory, for a cache that is not a thread's; `thread_id`
  // keeps it apart from others.
  [[nodiscard]] std::size_t take_batch(SizeClass c, void** slots, std::size_t n, std::uint32_t thread_id) noexcept {
    pool::Cursor cursor;
    const pool::Taken taken = find(cursor, c, static_cast<unsigned>(n), thread_id, nullptr);
    arena_.pool(c).clear_active(cursor, thread_id);
    if (taken.bits == 0) return 0;
    (void)arena_.report_slots(std::popcount(taken.bits) * static_cast<std::int64_t>(Classes::slot_bytes(c)));
    return pool::list_slots(arena_.geometry(c), taken, slots);
  }

 private:
  // A fragmented word yields little: a few more make the call worth while. Returns how many slots there are then.
  [[nodiscard, gnu::noinline]] std::size_t top_up(Cache& cache, SizeClass c, unsigned want, std::size_t n) noexcept {
    auto& bin = cache.bins[c];
    const auto& geometry = arena_.geometry(c);
    for (unsigned tries = 0; tries < 7 && n * 2 < want; ++tries) {
      // Again `want`, not what is missing: the rest of a word that was cut would be the next call's fragment, and so on.
      const pool::Taken taken = arena_.slots().take_slots(c, bin.cursor, want, cache.id, max_foreign_spans_);
      if (taken.bits == 0) break;
      const std::size_t more = pool::list_slots(geometry, taken, bin.array + 1 + n);
      returns_.report(cache, static_cast<std::int64_t>(more * geometry.slot_bytes));
      n += more;
    }
    return n;
  }
  // Free slots of spans that no other thread uses; else a new span, unless that many threads work in this class already that
  // sharing is no loss; else, when memory is short, free slots anywhere.
  [[nodiscard, gnu::noinline]] pool::Taken find(pool::Cursor& cursor, SizeClass c, unsigned want, std::uint32_t thread_id,
                                                Cache* cache) noexcept {
    const base::KeepErrno keep;
    pool::Taken taken = arena_.slots().take_slots(c, cursor, want, thread_id, max_foreign_spans_);
    if (taken.bits != 0) return taken;
    taken = arena_.claim(c, want, thread_id, Clock::now());
    // Kept mappings count under every limit, and so do runs that threads keep.
    if (taken.bits == 0 && direct_.drop_kept(~std::uint64_t{0}) != 0) taken = arena_.claim(c, want, thread_id, Clock::now());
    if (taken.bits == 0 && kept_.give_cached_runs(cache)) taken = arena_.claim(c, want, thread_id, Clock::now());
    if (taken.bits == 0) return arena_.slots().take_slots(c, cursor, want, thread_id, 0);
    arena_.pool(c).settle(cursor, taken.word, thread_id);
    return taken;
  }

  ArenaType& arena_;
  Direct& direct_;
  Registry& registry_;
  Kept& kept_;
  Arrays& arrays_;
  Returns& returns_;
  // So many spans of a class may be in use by other threads before a thread shares one instead of claiming a new one.
  unsigned max_foreign_spans_ = 2;
};

}  // namespace freehold::alloc
