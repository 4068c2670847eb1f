// SPDX-License-Identifier: MIT
// The slow paths of malloc and free: a thread's array is empty (refill) or full (drain); see core.hpp. Each step calls those
// that are indented below it, and returns.
//
//   refill(c)                           the array of class c is empty
//     grow                                it doubles, if the caches' budget has room
//     ArenaSlots::take_slots_at_home      free slots of the span where the thread works
//     find_slots
//       ArenaSlots::take_slots              free slots where the thread worked last, or where no other thread works
//         WordPool::find                      the word of the cursor; the thread's stripe of the tree; the other stripes
//           take_word                           one exchange for up to 64 slots
//         put_back, and again                 only if the span went to another class meanwhile
//       SpanSource::claim                   else a new span, of which the thread gets the first word
//         span_for                            free with its pages; wholly free of another class; clean; a new chunk
//         WordPool::publish
//       direct_.drop_kept, give_cached_runs  memory is short: the same again with what these give back
//       ArenaSlots::take_slots              and at last slots in any span
//     list_slots                          from bits to addresses, into the array
//
//   drain(c, slot)                      the array of class c is full, or this is one of its first frees
//     push_looked_at                      one of the first frees, or
//     grow, push_looked_at                it doubles, or
//     give_oldest                         its older half goes back
//       ArenaSlots::give_slots
//         group_slots                         from addresses to bits of words
//         WordPool::put                       one fetch_add for each word
//           announce                            the word was empty: its summary, and the tree of the span's class
//         note_full                           the word is full: if all words of the span are, it may be reclaimed
//         note_drained                        the span's pages are worth a look
//       report_slots                        every 64 KiB: tells the budget
//         relieve                             free memory beyond the budget goes back to the system, in a bounded step
#pragma once
#include <algorithm>
#include <bit>
#include <utility>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::refill(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  if (!bin.is_grown) [[unlikely]]
    (void)arrays_.grow(cache, c);
  bin.active = bin.is_refilled = true;
  const unsigned want = bin.batch;
  pool::Taken taken = arena_.slots().take_slots_at_home(c, bin.cursor, want, cache.id);
  if (taken.bits == 0) [[unlikely]]
    taken = find_slots(bin.cursor, c, want, cache.id, &cache);
  if (taken.bits == 0) return nullptr;
  // Relaxed: only this thread writes it.
  bin.refills.store(bin.refills.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_slow_call(cache);
  const auto& geometry = arena_.geometry(c);
  if (bin.capacity <= 1) [[unlikely]] {  // as it was asked for: one slot
    report_slots(cache, geometry.slot_bytes);
    return reinterpret_cast<void*>(geometry.address(taken.word, base::lowest_bit(taken.bits)));
  }
  void** const first = bin.array + 1;
  std::size_t n = pool::list_slots(geometry, taken, first);
  report_slots(cache, static_cast<std::int64_t>(n * geometry.slot_bytes));
  if (n * 2 < want) n = top_up(cache, c, want, n);
  void** const top = first + n;
  cache.top[c] = top - 1;
  if (bin.looks != 0) [[unlikely]]
    cache.limit[c] = top - 1;
  return top[-1];
}

// A fragmented word yields little: a few more make the call worth while. Returns how many slots there are then.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
std::size_t Core<A, Config, Pages, Clock>::top_up(Cache& cache, SizeClass c, unsigned want, std::size_t n) noexcept {
  auto& bin = cache.bins[c];
  const auto& geometry = arena_.geometry(c);
  for (unsigned tries = 0; tries < 7 && n * 2 < want; ++tries) {
    // Again `want`, not what is missing: the rest of a word that was cut would be the next call's fragment, and so on.
    const pool::Taken taken = arena_.slots().take_slots(c, bin.cursor, want, cache.id, max_foreign_spans_);
    if (taken.bits == 0) break;
    const std::size_t more = pool::list_slots(geometry, taken, bin.array + 1 + n);
    report_slots(cache, static_cast<std::int64_t>(more * geometry.slot_bytes));
    n += more;
  }
  return n;
}

// Free slots of spans that no other thread uses; else a new span, unless that many threads work in this class already that
// sharing is no loss; else, when memory is short, free slots anywhere.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
pool::Taken Core<A, Config, Pages, Clock>::find_slots(pool::Cursor& cursor, SizeClass c, unsigned want,
                                                      std::uint32_t thread_id, Cache* cache) noexcept {
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

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::drain(Cache& cache, SizeClass c, void* slot) noexcept {
  auto& bin = cache.bins[c];
  bin.active = true;
  if (bin.looks != 0 && cache.entries(c) < bin.capacity) return push_looked_at(cache, c, slot);
  bin.drains.store(bin.drains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_slow_call(cache);
  if (!bin.is_grown || (bin.can_burst && std::exchange(bin.is_refilled, false) && bin.may_keep)) [[unlikely]] {
    if (arrays_.grow(cache, c)) return push_looked_at(cache, c, slot);
    if (bin.capacity == 0) return give_back(cache, c, &slot, 1);
  }
  if (cache.top[c] == cache.limit[c]) [[likely]]
    give_oldest(cache, c);
  *cache.top[c]++ = slot;
}

// The older half of a full bin, or as much as a free may take the time for.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::give_oldest(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  const std::size_t n = bin.capacity, oldest = std::min((n + 1) / 2, 2 * pool::kMaxBatch);
  for (std::size_t i = 0; i < oldest; i += pool::kMaxBatch)
    give_back(cache, c, bin.array + 1 + i, std::min(oldest - i, pool::kMaxBatch));
  std::memmove(bin.array + 1, bin.array + 1 + oldest, (n - oldest) * sizeof(void*));
  cache.top[c] -= oldest;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::make_room(Cache& cache, SizeClass c) noexcept {
  auto& bin = cache.bins[c];
  bin.active = true;
  if (cache.entries(c) == bin.capacity && (bin.is_grown || !arrays_.grow(cache, c)) && bin.capacity != 0)
    give_oldest(cache, c);
  if (bin.capacity == 0) return;
  bin.looks = 0;
  cache.limit[c] = bin.array + 1 + bin.capacity;
}

// The first frees of an array, and those at which it grows, are looked at: a double free, or one of a wrong address, is told
// at once, where a program is short or has just begun. Pre: there is room.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::push_looked_at(Cache& cache, SizeClass c, void* slot) noexcept {
  auto& bin = cache.bins[c];
  if (bin.looks != 0) --bin.looks;
  cache.limit[c] = bin.looks != 0 ? cache.top[c] + 1 : bin.array + 1 + bin.capacity;
  const BlockPlace place = blocks_.block_around(slot);
  if (place.start != slot) return base::fatal(base::HeapError::kInteriorPointer, slot);
  if (!place.in_use || std::find(bin.array + 1, cache.top[c], slot) != cache.top[c])
    return base::fatal(base::HeapError::kDoubleFree, slot);
  (void)cache.push(c, slot);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::give_back(Cache& cache, SizeClass c, void* const* slots, std::size_t n) noexcept {
  auto& bin = cache.bins[c];
  const std::uint32_t remote = arena_.slots().give_slots(c, slots, n, bin.cursor.word, cache.id);
  bin.may_keep = remote == 0 || Classes::slot_bytes(c) >= base::kCacheLine;
  // Relaxed: only this thread writes it.
  if (remote != 0)
    cache.remote_frees.store(cache.remote_frees.load(std::memory_order_relaxed) + remote, std::memory_order_relaxed);
  report_slots(cache, -static_cast<std::int64_t>(n * Classes::slot_bytes(c)));
}

// Adds to what the cache took (positive) or gave back since its last report, and reports when it is worth while.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
inline void Core<A, Config, Pages, Clock>::report_slots(Cache& cache, std::int64_t bytes) noexcept {
  const std::int64_t unreported = cache.unreported += bytes;
  if (unreported >= kReportBytes || unreported <= -kReportBytes) [[unlikely]]
    report_now(cache);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::report_now(Cache& cache) noexcept {
  const base::KeepErrno keep;
  if (arena_.report_slots(std::exchange(cache.unreported, 0))) relief_.relieve(kept_.own_runs(cache), 0);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::count_slow_call(Cache& cache) noexcept {
  // Every 64th call, or every one while memory waits to be given back: a program that went quiet makes few.
  if (++cache.slow_calls % kSlowCallsPerTick == 0 || arena_.due().something()) [[unlikely]]
    tick_slow(cache);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::tick_slow(Cache& cache) noexcept {
  const std::uint64_t now = Clock::now();
  if (cache.slow_calls % kSlowCallsPerTick != 0 && !relief_.is_tick_due(now)) return;
  const base::KeepErrno keep;
  relief_.tick(now);
  if (cache.slow_calls % (kSlowCallsPerTick * kTicksPerIdleLook) == 0) look_for_idle_bins(cache);
}

// ---- without a thread's cache ---------------------------------------------------------------------------------------

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
std::size_t Core<A, Config, Pages, Clock>::take_batch(SizeClass c, void** slots, std::size_t n, unsigned cpu) noexcept {
  pool::Cursor cursor;
  const std::uint32_t thread_id = Registry::kFirstCpuId + cpu;
  const pool::Taken taken = find_slots(cursor, c, static_cast<unsigned>(n), thread_id, nullptr);
  arena_.pool(c).clear_active(cursor, thread_id);
  if (taken.bits == 0) return 0;
  (void)arena_.report_slots(std::popcount(taken.bits) * static_cast<std::int64_t>(Classes::slot_bytes(c)));
  return pool::list_slots(arena_.geometry(c), taken, slots);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::give_batch(SizeClass c, void* const* slots, std::size_t n) noexcept {
  pool::WordIndex last = 0;
  (void)arena_.slots().give_slots(c, slots, n, last, 0);
  const std::uint64_t now = Clock::now();
  if (arena_.report_slots(-static_cast<std::int64_t>(n * Classes::slot_bytes(c)))) relief_.relieve(nullptr, 0);
  relief_.tick(now);
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void* Core<A, Config, Pages, Clock>::allocate_uncached(SizeClass c) noexcept {
  void* slot;
  return take_batch(c, &slot, 1, 0) == 1 ? slot : nullptr;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::free_uncached(SizeClass c, void* slot) noexcept {
  give_batch(c, &slot, 1);
  late_frees_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace freehold::alloc
