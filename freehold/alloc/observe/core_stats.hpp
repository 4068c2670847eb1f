// SPDX-License-Identifier: MIT
// The engine's figures, the look for misuse in caches, and the checks of Core's invariants; see core.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "freehold/alloc/core.hpp"

namespace freehold::alloc {

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
void Core<A, Config, Pages, Clock>::stats(Stats& out) noexcept {
  std::memset(&out, 0, sizeof out);
  out.version = kStatsVersion;
  out.class_count = Classes::kCount - 1;
  const sync::Guard registry_guard(registry_.lock());
  for (const SizeClass c : AllClasses<Classes>{}) out.classes[c.index() - 1].slot_bytes = Classes::slot_bytes(c);
  registry_.add_stats(out);
  std::int64_t kept_spans = 0;
  for (const Cache* cache = registry_.first(); cache != nullptr; cache = cache->next)
    if (cache->runs != nullptr)
      cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { kept_spans += std::popcount(dirty); });
  arena_.for_each_span([&](SpanIndex i, SizeClass c) {
    if (c.is_slot()) {
      auto& k = out.classes[c.index() - 1];
      ++k.spans;
      k.slots += arena_.pool(c).shape().slots;
      k.free_slots += arena_.pool(c).free_slots(i);
      out.small_span_bytes += ArenaType::kSpanBytes;
    } else {
      out.run_bytes += arena_.runs().run_spans(i) * ArenaType::kSpanBytes;
    }
  });
  // Relaxed: figures that need not fit together.
  const auto& counters = arena_.counters();
  out.reserved_bytes = arena_.committed_bytes() + arena_.metadata_bytes();
  out.committed_bytes = arena_.committed_bytes();
  const auto direct = direct_.count();
  out.direct_blocks = direct.blocks;
  out.direct_bytes = direct.bytes;
  out.kept_bytes = direct_.kept_bytes() + direct.bytes_of_threads;
  out.free_dirty_bytes =
      arena_.free_dirty_bytes() + static_cast<std::uint64_t>(kept_spans) * ArenaType::kSpanBytes + out.kept_bytes;
  // Returns what is lent of the common budget, give or take a thread that is just borrowing.
  out.cached_limit_bytes = registry_.threads() * Config::kThreadBytes + arrays_.common() - arrays_.left();
  out.metadata_bytes = registry_.metadata().mapped_bytes() + direct_.metadata_bytes() + arena_.metadata_bytes();
  out.purged_bytes = counters.purged_bytes.load(std::memory_order_relaxed);
  out.purge_calls = counters.purge_calls.load(std::memory_order_relaxed);
  out.span_claims = counters.span_claims.load(std::memory_order_relaxed);
  out.span_returns = counters.span_returns.load(std::memory_order_relaxed);
  out.lock_waits = arena_.lock_waits() + registry_.lock().waits().count() + large_.admission().waits().count() +
                   direct_.lock().waits().count();
  out.late_frees = late_frees_.load(std::memory_order_relaxed);
}

// ---- misuse -----------------------------------------------------------------------------------------------------------

// All caches at once, so that a slot that two of them hold is seen. What a cache's owner wrote is read as it is: if the
// thread ran during the read, the result is forgotten.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
template <class StampOf>
__attribute__((no_sanitize("thread"))) void Core<A, Config, Pages, Clock>::report_misuse_in_caches(
    const Cache* mine, void** room, std::size_t most, StampOf&& stamp_of) noexcept {
  std::size_t n = 0;
  const sync::Guard guard(registry_.lock());
  for (const Cache* cache = registry_.first(); cache != nullptr; cache = cache->next) {
    const std::int32_t thread = cache->thread.load(std::memory_order_relaxed);
    const std::uint64_t stamp = cache == mine ? 1 : stamp_of(thread);
    if (stamp == 0 || !Gate::is_quiet(cache->inside)) continue;  // during a slow call a slot may be free and in the array
    const std::size_t before = n;
    for (const SizeClass c : AllClasses<Classes>{}) {
      // Each read once: an owner that runs moves its array, and the two need not fit together.
      void** const array = __atomic_load_n(&cache->bins[c].array, __ATOMIC_RELAXED);
      void** const top = __atomic_load_n(&cache->top.items[c.index()], __ATOMIC_RELAXED);
      if (array == nullptr || top <= array) continue;
      const auto entries = static_cast<std::size_t>(top - array) - 1;
      if (entries > Config::kBurstSlots || entries > most - n) continue;
      for (std::size_t i = 0; i < entries; ++i)
        if (void* const slot = array[1 + i]; slot != nullptr) room[n++] = slot;
    }
    if (cache != mine && stamp_of(thread) != stamp) n = before;
  }
  std::sort(room, room + n);
  for (std::size_t i = 0; i < n; ++i) {
    const BlockPlace place = blocks_.block_around(room[i]);
    if (place.start != room[i])
      base::fatal(base::HeapError::kInteriorPointer, room[i]);
    else if (!place.in_use || (i != 0 && room[i - 1] == room[i]))
      base::fatal(base::HeapError::kDoubleFree, room[i]);
  }
}

// ---- invariants -----------------------------------------------------------------------------------------------------

// The invariant of thread_cache.hpp for one bin, and that its slots are of its class and not free in the bitmap as well.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::check_bin(const Cache& cache, SizeClass c) noexcept {
  const auto& bin = cache.bins[c];
  if (bin.array == nullptr) return bin.capacity == 0 && cache.top[c] == cache.limit[c] && cache.top[c][-1] == nullptr;
  void** const first = bin.array + 1;
  if (bin.array[0] != nullptr || cache.limit[c] > first + bin.capacity) return false;
  if (bin.looks == 0 && cache.limit[c] != first + bin.capacity) return false;
  if (cache.top[c] < first || cache.top[c] > cache.limit[c]) return false;
  if (std::count(first, cache.top[c], nullptr) != bin.marks) return false;
  pool::SlotGroups groups;
  for (void** slot = first; slot != cache.top[c]; ++slot) {
    if (*slot == nullptr) continue;
    const std::size_t span = (reinterpret_cast<std::uintptr_t>(*slot) - arena_.base()) >> ArenaType::kSpanShift;
    if (span >= arena_.span_count() || arena_.span_classes()[span].load(std::memory_order_relaxed) != c.index())
      return false;
    pool::group_slots(arena_.geometry(c), slot, 1, groups);
    if (groups.misplaced != 0) return false;
    const auto [index, bits] = groups.groups[0];
    if ((bits & ~arena_.pool(c).shape().full(pool::word_in_span(index))) != 0) return false;
    if ((arena_.words_of(c)[index].load(std::memory_order_relaxed) & bits) != 0) return false;
  }
  return true;
}

// True if a thread keeps the free span; two at once are one too many.
template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::is_kept(SpanIndex i) noexcept {
  unsigned keepers = 0;
  for (const Cache* cache = registry_.first(); cache != nullptr; cache = cache->next)
    if (cache->runs != nullptr)
      cache->runs->for_each([&](std::uint32_t chunk, std::uint64_t free, auto) {
        keepers += chunk == i / ArenaType::kChunkSpans && (free >> i % ArenaType::kChunkSpans & 1) != 0 ? 1 : 0;
      });
  return keepers == 1;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::check_invariants() noexcept {
  const sync::Guard registry_guard(registry_.lock());
  std::uint64_t caches = 0;
  std::size_t lent = 0;
  for (const Cache* cache = registry_.first(); cache != nullptr; cache = cache->next) {
    std::size_t granted = 0;
    for (const SizeClass c : AllClasses<Classes>{}) {
      if (!check_bin(*cache, c)) return false;
      granted += cache->bins[c].capacity * Classes::slot_bytes(c);
    }
    if (granted != cache->granted || granted > cache->allowance || cache->allowance < Config::kThreadBytes) return false;
    lent += cache->allowance - Config::kThreadBytes;
    ++caches;
  }
  return caches == registry_.threads() && lent + arrays_.left() == arrays_.common() && direct_.check_invariants() &&
         arena_.check_invariants([this](SpanIndex i) { return is_kept(i); });
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::check_accounts() noexcept {
  const sync::Guard registry_guard(registry_.lock());
  typename ArenaType::Unreported unreported;
  for (const Cache* cache = registry_.first(); cache != nullptr; cache = cache->next) {
    unreported.slot_bytes += cache->unreported;
    if (cache->runs == nullptr) continue;
    unreported.dirty_spans += cache->runs->dirty_spans();
    unreported.run_spans += cache->runs->run_spans;
    cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { unreported.kept_dirty_spans += std::popcount(dirty); });
  }
  const auto told = arena_.budget().figures();
  return told.direct == static_cast<std::int64_t>(direct_.live_bytes()) &&
         told.kept == static_cast<std::int64_t>(direct_.kept_bytes()) && arena_.check_accounts(unreported);
}

}  // namespace freehold::alloc
