// SPDX-License-Identifier: MIT
// The engine's figures, and the checks of Core's invariants; see core.hpp.
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
  const sync::Guard registry_guard(registry_);
  for (const SizeClass c : AllClasses<Classes>{}) {
    out.classes[c.index() - 1].slot_bytes = Classes::slot_bytes(c);
    out.classes[c.index() - 1].refills = past_refills_[c];
    out.classes[c.index() - 1].drains = past_drains_[c];
  }
  std::int64_t kept_spans = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    if (cache->runs != nullptr)
      cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { kept_spans += std::popcount(dirty); });
    for (const SizeClass c : AllClasses<Classes>{}) {
      out.classes[c.index() - 1].refills += cache->bins[c].refills.load(std::memory_order_relaxed);
      out.classes[c.index() - 1].drains += cache->bins[c].drains.load(std::memory_order_relaxed);
    }
  }
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
  out.free_dirty_bytes =
      arena_.free_dirty_bytes() + static_cast<std::uint64_t>(kept_spans) * ArenaType::kSpanBytes + direct_.kept_bytes();
  out.direct_bytes = direct_.live_bytes();
  // What is lent of the common budget, give or take a thread that is just borrowing.
  out.cached_limit_bytes = threads() * Config::kThreadBytes + common_budget_ - budget_.load(std::memory_order_relaxed);
  out.metadata_bytes = metadata_.mapped_bytes() + direct_.metadata_bytes() + arena_.metadata_bytes();
  out.purged_bytes = counters.purged_bytes.load(std::memory_order_relaxed);
  out.purge_calls = counters.purge_calls.load(std::memory_order_relaxed);
  out.span_claims = counters.span_claims.load(std::memory_order_relaxed);
  out.span_returns = counters.span_returns.load(std::memory_order_relaxed);
  out.lock_waits =
      arena_.lock_waits() + registry_.waits().count() + admission_.waits().count() + direct_.lock().waits().count();
  out.threads = threads();
  out.peak_threads = peak_threads_;
  out.late_frees = late_frees_.load(std::memory_order_relaxed);
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
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next)
    if (cache->runs != nullptr)
      cache->runs->for_each([&](std::uint32_t chunk, std::uint64_t free, auto) {
        keepers += chunk == i / ArenaType::kChunkSpans && (free >> i % ArenaType::kChunkSpans & 1) != 0 ? 1 : 0;
      });
  return keepers == 1;
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::check_invariants() noexcept {
  const sync::Guard registry_guard(registry_);
  std::uint64_t caches = 0;
  std::size_t lent = 0;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    std::size_t granted = 0;
    for (const SizeClass c : AllClasses<Classes>{}) {
      if (!check_bin(*cache, c)) return false;
      granted += cache->bins[c].capacity * Classes::slot_bytes(c);
    }
    if (granted != cache->granted || granted > cache->allowance || cache->allowance < Config::kThreadBytes) return false;
    lent += cache->allowance - Config::kThreadBytes;
    ++caches;
  }
  return caches == threads() && lent + budget_.load(std::memory_order_relaxed) == common_budget_ &&
         direct_.check_invariants() && arena_.check_invariants([this](SpanIndex i) { return is_kept(i); });
}

template <sync::Atomics A, class Config, os::PageSource Pages, class Clock>
bool Core<A, Config, Pages, Clock>::check_accounts() noexcept {
  const sync::Guard registry_guard(registry_);
  typename ArenaType::Unreported unreported;
  for (const Cache* cache = caches_; cache != nullptr; cache = cache->next) {
    unreported.slot_bytes += cache->unreported;
    if (cache->runs == nullptr) continue;
    unreported.dirty_spans += cache->runs->dirty_spans;
    unreported.run_spans += cache->runs->run_spans;
    cache->runs->for_each([&](auto, auto, std::uint64_t dirty) { unreported.kept_dirty_spans += std::popcount(dirty); });
  }
  const auto told = arena_.budget().figures();
  return told.direct == static_cast<std::int64_t>(direct_.live_bytes()) &&
         told.kept == static_cast<std::int64_t>(direct_.kept_bytes()) && arena_.check_accounts(unreported);
}

}  // namespace freehold::alloc
