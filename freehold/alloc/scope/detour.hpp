// SPDX-License-Identifier: MIT
// A thread's word leads to a detour while the thread counts its calls (engine_count.cpp) or takes its blocks from a private
// heap (engine_scope.cpp): to a cache whose bins are empty and full at once, so that every call comes by. Behind it stands
// what the word led to before: a cache of the thread, one of g_modes, or the detour around this one. Fast paths know nothing
// of it, and neither do other threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "freehold/alloc/engine_state.hpp"
#include "freehold/alloc/observe/count.hpp"
#include "freehold/alloc/scope/scope.hpp"

namespace freehold::alloc::engine {

struct Detour {
  NativeCache head{g_nothing, &kCounted};   // first: the thread's word has its address
  NativeCache* own = nullptr;               // what stands behind
  ScopedHeap* heap = nullptr;               // of the newest scope, as counts within it have it, too; null: none
  bool counts = false, some_count = false;  // this one; this one or one around it
  OnAllocation what = OnAllocation::kCount;
  Counts counted;
  std::int64_t live = 0;

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

[[nodiscard]] inline Detour* detour_of(NativeCache* cache) noexcept {
  return cache->slow.load(std::memory_order_relaxed) == &kCounted ? reinterpret_cast<Detour*>(cache) : nullptr;
}

// The calling thread's word leads to a new detour, with the heap and the counts of the one around it. Null: no memory.
[[nodiscard]] Detour* begin_detour() noexcept;
// To what stands behind the newest one again.
void end_detour(Detour& newest) noexcept;

// A block of the newest detour's heap, which has one.
[[nodiscard]] void* allocate_scoped(Detour& detour, std::size_t bytes, std::size_t alignment) noexcept;

// Every count of the calling thread that sees the call, from the newest detour on.
template <class F>
void for_each_count(Detour& newest, F&& f) noexcept {
  if (!newest.some_count) return;
  for (Detour* detour = &newest; detour != nullptr; detour = detour_of(detour->own))
    if (detour->counts) f(*detour);
}

}  // namespace freehold::alloc::engine
