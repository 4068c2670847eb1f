// The two paths that every program runs all the time: pop and push of the calling thread's array. Inlined into the
// exported symbols; counted in instructions by a test (14 for malloc(12), 16 for its free, with GCC 12 on x86-64).
// A thread without a cache uses one whose bins are empty and full at once, so there is nothing to check first.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/config.hpp"
#include "freehold/alloc/core.hpp"
#include "freehold/os/clock.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct CoarseClock {
  static std::uint64_t now() noexcept { return os::coarse_milliseconds(); }
};

using NativeCore = Core<sync::NativeAtomics, NativeConfig, os::Pages, CoarseClock>;
using NativeCache = NativeCore::Cache;

extern constinit NativeCore g_core;
// One word of static thread-local storage: a program that loads us late has no more to spare.
extern constinit thread_local NativeCache* t_cache;

[[nodiscard, gnu::noinline]] void* allocate_slow(std::size_t bytes) noexcept;
[[gnu::noinline]] void deallocate_slow(void* block) noexcept;

[[nodiscard, gnu::always_inline]] inline void* allocate_inline(std::size_t bytes) noexcept {
  // 0 becomes huge and goes the slow way, as does everything above the table.
  const std::size_t granule = (bytes - 1) >> 4;
  if (granule < sizeof(NativeCache::class_of_small)) [[likely]] {
    NativeCache* const cache = t_cache;
    void* const slot = cache->pop(cache->class_of_small[granule]);
    if (slot != nullptr) [[likely]]
      return slot;
  }
  return allocate_slow(bytes);
}

[[gnu::always_inline]] inline void deallocate_inline(void* block) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_core.arena().base()) >> NativeConfig::kSpanShift;
  if (span < g_core.arena().span_count()) [[likely]] {
    // Relaxed: the block is the caller's, so its span cannot change hands. Class 0 (not a slot) has a bin that is full.
    const unsigned c = g_core.arena().owners()[span].load(std::memory_order_relaxed);
    if (t_cache->push(c, block)) [[likely]]
      return;
  }
  deallocate_slow(block);
}

}  // namespace freehold::alloc
