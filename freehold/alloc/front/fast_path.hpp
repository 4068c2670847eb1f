// SPDX-License-Identifier: MIT
// malloc and free as every program runs them all the time: pop and push of the calling thread's array. Inlined into the
// exported symbols; a test counts their instructions (14 for malloc(12), 16 for its free, with GCC 12 on x86-64).
// A thread without a cache uses one whose bins are empty and full at once, so there is nothing to check first.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/alloc/config.hpp"
#include "freehold/alloc/core.hpp"
#include "freehold/alloc/observe/checked.hpp"
#include "freehold/base/config.hpp"
#include "freehold/os/clock.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct CoarseClock {
  static std::uint64_t now() noexcept { return os::coarse_milliseconds(); }
};

// Spans that exist by now; a block lies in one of them, or not in the arena. A copy of the arena's own figure.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::size_t> g_span_count;
[[nodiscard, gnu::always_inline]] inline std::size_t span_count() noexcept {
  return g_span_count.load(std::memory_order_relaxed);  // relaxed: a block's user was told its address after it grew
}

struct EngineConfig : NativeConfig {
  static constexpr bool kCountsRemoteFrees = true;
  static void note_detached(void* cache) noexcept;  // what it keeps for scopes: engine_scope.cpp
  static void note_span_count(std::size_t count) noexcept { g_span_count.store(count, std::memory_order_relaxed); }
};

using NativeCore = Core<sync::NativeAtomics, EngineConfig, os::Pages, CoarseClock>;
using NativeCache = NativeCore::Cache;

// Hidden by name: -fvisibility covers definitions only, and an address from the table of offsets is an instruction more.
[[gnu::visibility("hidden")]] extern constinit NativeCore g_core;
// free() needs these of the arena, beside each other and reached without an address of g_core: written once, at the start.
[[gnu::visibility("hidden")]] extern constinit std::uintptr_t g_base;
[[gnu::visibility("hidden")]] extern constinit const std::atomic<std::uint8_t>* g_span_classes;
// One word of static thread-local storage: a program that loads us late has no more to spare.
[[gnu::visibility("hidden")]] extern constinit thread_local NativeCache* t_cache;

[[nodiscard, gnu::noinline]] void* allocate_slow(std::size_t bytes) noexcept;
[[gnu::noinline]] void deallocate_slow(void* block) noexcept;
// The slow half of a call that is not malloc's, for checked mode.
template <Family kFamily>
[[nodiscard, gnu::noinline]] void* allocate_slow_as(std::size_t bytes) noexcept {
  return allocate_as(kFamily, bytes);
}

// Tells the compiler that `value` may have changed, without an instruction: keeps it from splitting one computation into
// two (a compare on another form of the same value, an address computed apart from its use).
template <class T>
[[gnu::always_inline]] inline void keep_whole(T& value) noexcept {
  asm("" : "+r"(value));
}

template <Family kFamily = Family::kMalloc>
[[nodiscard, gnu::always_inline]] inline void* allocate_inline(std::size_t bytes) noexcept {
  // 0 becomes huge and goes the slow way, as does everything above the table.
  std::size_t granule = (bytes - 1) >> 4;
  keep_whole(granule);
  if (granule < sizeof(NativeCache::class_of_small)) [[likely]] {
    NativeCache* const cache = t_cache;
    const std::size_t c = cache->class_of_small[granule];
    void** top = cache->top.items[c] - 1;
    void* const slot = *top;
    if (slot != nullptr) [[likely]] {
      cache->top.items[c] = top;
      return slot;
    }
  }
  if constexpr (kFamily != Family::kMalloc) return allocate_slow_as<kFamily>(bytes);
  return allocate_slow(bytes);
}

// Gives the block to the calling thread's array. False, and nothing done, if it is no slot of the first `spans` spans
// or there is no room.
[[nodiscard, gnu::always_inline]] inline bool push_inline(void* block, const std::atomic<std::size_t>& spans) noexcept {
  const std::size_t span = (reinterpret_cast<std::uintptr_t>(block) - g_base) >> NativeConfig::kSpanShift;
  if (base::is_below(span, spans)) [[likely]] {
    // Relaxed: the block is the caller's, so its span cannot change hands. Class 0 (not a slot) has a bin that is full.
    std::size_t c = g_span_classes[span].load(std::memory_order_relaxed);
    keep_whole(c);
    NativeCache* cache = t_cache;
    void** const top = cache->top.items[c];
    keep_whole(cache);
    if (top != cache->limit.items[c]) [[likely]] {
      *top = block;
      keep_whole(cache);
      cache->top.items[c] = top + 1;
      return true;
    }
  }
  return false;
}

[[gnu::always_inline]] inline void deallocate_inline(void* block) noexcept {
  if (!push_inline(block, g_span_count)) [[unlikely]]
    deallocate_slow(block);
}

}  // namespace freehold::alloc
