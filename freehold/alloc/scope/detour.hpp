// SPDX-License-Identifier: MIT
// A thread's word leads to a detour while the thread counts its calls (engine_count.cpp) or takes its blocks from a private
// heap (engine_scope.cpp). Behind it stands what the word led to before: a cache of the thread, one of g_modes, or the
// detour around this one. Fast paths know nothing of it.
//
// A count's bins are empty and full at once, so that every call comes by. In a scope malloc pops slots of the heap: its
// table of classes leads to arrays that free never pushes to, since no span has these classes. Blocks of all heaps
// that are freed go to the one array of class kOfHeaps. Where malloc finds its array empty, the freed slots of the scope's
// heap move there. At the scope's end both go back to their heaps.
//
//   Invariant: a detour without an open scope holds neither slots nor freed blocks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/count.hpp"
#include "freehold/alloc/scope/scope.hpp"
#include "freehold/alloc/scope/scope_slots.hpp"
#include "freehold/base/asan.hpp"
#include "freehold/base/config.hpp"

namespace freehold::alloc::engine {

struct Detour {
  static constexpr std::size_t kClasses = NativeCache::kSmallClasses, kSlots = ScopeSlots::kSlots;

  NativeCache head{g_nothing, &kCounted};   // first: the thread's word has its address
  NativeCache* own = nullptr;               // what stands behind
  NativeCache* cache = nullptr;             // the thread's own, behind all; null: it has none
  std::atomic<ScopedHeap*> heap{nullptr};   // of the newest scope, as counts within it have it, too; null: none
  bool counts = false, some_count = false;  // this one; this one or one around it
  bool keeps = false;                       // slots and freed blocks
  OnAllocation what = OnAllocation::kCount;
  Counts counted;
  std::int64_t live = 0;
  std::uint32_t stack = 0;                   // checked mode: that entered the scope
  std::atomic<const void*> thread{nullptr};  // whose it is, by the address of its word; null: no thread's
  Detour* next = nullptr;                    // all detours that ever were
  ScopeSlots slots;

  Detour() noexcept {
    for (std::uint8_t& c : head.class_of_small) c = static_cast<std::uint8_t>(c + NativeCache::kScopeTops);
    slots.tops = &head.top.items[NativeCache::kScopeTops];
    for (std::size_t c = 0; c < kClasses; ++c) slots.tops[c] = slots.first(c);
    slots.tops[0] += kSlots;  // full
  }

  inline void keep(bool keeps_now) noexcept;  // Pre: it holds nothing
  void note_allocation(std::size_t bytes) noexcept {
    if (counted.allocations++ == 0 && what != OnAllocation::kCount) report();
    counted.allocated_bytes += bytes;
    live += static_cast<std::int64_t>(bytes);
    if (live > 0) counted.peak_bytes = std::max(counted.peak_bytes, static_cast<std::uint64_t>(live));
  }
  void note_free(std::size_t bytes) noexcept {
    ++counted.frees;
    counted.freed_bytes += bytes;
    live -= static_cast<std::int64_t>(bytes);
  }
  [[gnu::cold, gnu::noinline]] void report() const noexcept;
};
static_assert(Detour::kClasses == ScopeSlots::kClasses);

[[nodiscard]] inline Detour* detour_of(NativeCache* cache) noexcept {
  return cache->slow.load(std::memory_order_relaxed) == &kCounted ? reinterpret_cast<Detour*>(cache) : nullptr;
}

// The array of freed blocks of a cache or a detour.
[[nodiscard]] inline void** first_heap_free(NativeCache& cache) noexcept {
  static_assert(sizeof cache.heap_frees.entries[0] == sizeof(void*));
  return reinterpret_cast<void**>(&cache.heap_frees.entries[0]);
}
// Returns whether threads may keep freed blocks: one that takes them from another thread sees what was done with them, and a
// sanitizer misses nothing.
[[nodiscard]] inline bool may_keep_heap_frees() noexcept {
  return !base::kInstrumented && (base::kStoresAreInOrder || g_gate.fences_others());
}
// It takes blocks from now on, or every one comes by. Pre: it is empty.
inline void keep_heap_frees(NativeCache& cache, bool keeps) noexcept {
  void** const first = first_heap_free(cache);
  cache.top[NativeCache::kOfHeaps] = keeps ? first : g_nothing + 1;
  cache.limit[NativeCache::kOfHeaps] = keeps ? first + HeapFrees<sync::NativeAtomics>::kEntries : g_nothing + 1;
}
[[nodiscard]] inline bool has_heap_frees(NativeCache& cache) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(first_heap_free(cache));
  const auto bytes = reinterpret_cast<std::uintptr_t>(cache.top[NativeCache::kOfHeaps]) - first;
  return bytes - 1 < sizeof cache.heap_frees.entries;  // unless it is empty, or takes none
}

inline void Detour::keep(bool keeps_now) noexcept {
  if (keeps == keeps_now) [[likely]]
    return;
  keeps = keeps_now;
  keep_heap_frees(head, keeps_now && may_keep_heap_frees());
}

// All detours that ever were.
extern constinit std::atomic<Detour*> g_detours;
template <class F>
void for_each_detour(const F& f) noexcept {
  for (Detour* each = g_detours.load(std::memory_order_acquire); each != nullptr; each = each->next) f(*each);
}

// They, and the spare ones behind each, belong to no thread any more.
void release_detours(NativeCache* first) noexcept;
// Gives its slots and freed blocks to their heaps. Pre: it is the calling thread's, or no thread's.
[[gnu::noinline]] void empty_detour(Detour& detour) noexcept;
// One that no thread has any more, or a new one. Null: no memory.
[[nodiscard, gnu::noinline]] Detour* claim_detour() noexcept;

[[nodiscard]] inline ScopedHeap* heap_of(const Detour* detour) noexcept {
  return detour != nullptr ? detour->heap.load(std::memory_order_relaxed) : nullptr;
}

// The calling thread's word leads to a new detour, with the counts of the one around it. Null: no memory.
[[nodiscard]] inline Detour* begin_detour(ScopedHeap* heap) noexcept {
  auto* detour = reinterpret_cast<Detour*>(t_cache->spare_detour);
  if (detour != nullptr) [[likely]]
    t_cache->spare_detour = nullptr;
  else if (detour = claim_detour(); detour == nullptr)
    return nullptr;
  NativeCache* const own = t_cache;
  const Detour* const outer = detour_of(own);
  detour->own = own;
  detour->cache = outer != nullptr ? outer->cache : own->id != 0 ? own : nullptr;
  detour->heap.store(heap, std::memory_order_relaxed);
  detour->counts = false;
  detour->some_count = outer != nullptr && outer->some_count;
  t_cache = &detour->head;
  return detour;
}

// To what stands behind the newest one again.
inline void end_detour(Detour& newest) noexcept {
  if (newest.slots.filled != 0 || has_heap_frees(newest.head)) empty_detour(newest);
  newest.heap.store(nullptr, std::memory_order_relaxed);
  NativeCache& own = *newest.own;
  t_cache = &own;
  if ((own.id != 0 || detour_of(&own) != nullptr) && own.spare_detour == nullptr) [[likely]]  // a mode is all threads'
    own.spare_detour = &newest.head;
  else
    release_detours(&newest.head);
}

// A block of the newest detour's heap. Null and no heap: that has ended.
[[nodiscard]] void* allocate_scoped(Detour& detour, std::size_t bytes, std::size_t alignment) noexcept;

// Every count of the calling thread that sees the call, from the newest detour on.
template <class F>
void for_each_count(Detour& newest, F&& f) noexcept {
  if (!newest.some_count) return;
  for (Detour* detour = &newest; detour != nullptr; detour = detour_of(detour->own))
    if (detour->counts) f(*detour);
}

}  // namespace freehold::alloc::engine
