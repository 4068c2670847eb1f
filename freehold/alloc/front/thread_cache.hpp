// SPDX-License-Identifier: MIT
// A thread's share of free slots: one small array of slot addresses per size class. Allocate pops, free pushes; neither
// touches the slot nor a shared line.
//
// Two tables of pointers, `top` and `limit`, lead to the arrays of all classes, so that the empty and the full check are one
// compare each. No check for "is there a cache yet" is needed: a thread without one uses a shared cache whose bins are empty
// and full at once, which sends every call to the slow path.
//
//   Invariant, for each bin: array[0] == nullptr (the sentinel that stops pop), entries lie in array[1 … top), and
//   array + 1 <= top <= limit <= array + 1 + capacity, and limit == array + 1 + capacity except for the first frees
//   (Bin::looks). Slots in the array are free, and their bits are clear. An entry may be null: a mark, the place of a slot
//   that is sampled. A pop that meets one goes the slow way, as at the end of the array; bins[c].marks of the entries are
//   marks. Only caches whose `slow` is the observers' have some (engine_profile.cpp).
//
// Owner thread only, except the counters, which stats read from any thread.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "freehold/alloc/large/run_cache.hpp"
#include "freehold/alloc/observe/live_figures.hpp"
#include "freehold/alloc/scope/heap_frees.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "freehold/base/member_offset.hpp"
#include "freehold/profile/mark_weights.hpp"
#include "freehold/slots/word_pool.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct ScopedHeap;

template <sync::Atomics A, class Config>
struct ThreadCache {
  using Classes = typename Config::Classes;
  using Counter = typename A::template atomic<std::uint64_t>;
  static constexpr std::size_t kCount = Classes::kCount;
  static constexpr std::uint8_t kLooks = 3;  // a, b and a again
  // The class of spans that hold blocks of private heaps, of any size: their frees have one array, heap_frees.
  static constexpr SizeClass kOfHeaps{static_cast<std::uint32_t>(kCount)};
  // In a detour malloc takes its slots from here on, so that free gives none to the same array: detour.hpp.
  static constexpr std::size_t kScopeTops = kCount + 1;
  static constexpr std::size_t kSmallClasses = Classes::class_of(Classes::kTableBytes).index() + 1;

  // The owner's calls go on here when a bin is empty or full (engine_state.hpp).
  struct Slow {
    void* (*allocate)(ThreadCache& cache, SizeClass c, std::size_t bytes, std::size_t alignment) noexcept;
    void (*free)(ThreadCache& cache, SizeClass c, void* slot) noexcept;
  };

  // Every bin empty and full at once; `nothing` is two null words that outlive the cache.
  constexpr explicit ThreadCache(void** nothing, const Slow* slow_calls = nullptr) noexcept : slow(slow_calls) {
    for (std::size_t c = 0; c <= kCount; ++c) top.items[c] = limit.items[c] = nothing + 1;
    for (std::size_t i = 0; i < sizeof class_of_small; ++i)
      class_of_small[i] = static_cast<std::uint8_t>(Classes::class_of(i * 16 + 1).index());
  }

  // The fast path's part: 1.5 KiB, of which a program touches the lines of its classes.
  PerClass<void**, kScopeTops + kSmallClasses> top;  // one past the newest entry
  PerClass<void**, kCount + 1> limit;                // where the array ends
  std::uint8_t class_of_small[Classes::kTableBytes / 16]{};
  // Written under the registry's lock. Relaxed: constant tables.
  typename A::template atomic<const Slow*> slow;

  struct Bin {
    void** array = nullptr;  // null: no array yet
    pool::Cursor cursor;     // where this thread took or gave slots last
    std::uint16_t capacity = 0;
    std::uint16_t marks = 0;   // entries that are null: the observers'
    std::uint8_t batch = 1;    // slots that a refill asks for: half of the capacity, at most a word
    bool is_grown = false;     // as far as refills let it grow
    bool can_burst = false;    // drains may let it grow further
    bool is_refilled = false;  // it was refilled since a drain last asked
    bool may_keep = false;     // the slots that it gave back last share no lines with blocks of other threads
    bool active = false;       // used since the last look for idle bins
    std::uint8_t looks = 0;    // frees of the first ones that still meet the limit and are checked
    Counter refills{0}, drains{0};
  };
  PerClass<Bin, kCount> bins;

  std::size_t granted = 0;      // bytes that the bins may hold together
  std::size_t allowance = 0;    // bytes this thread may grant: its own share and what it took from the common budget
  std::int64_t unreported = 0;  // bytes taken from the pools, less those given back, that the arena does not know of
  std::uint32_t id = 0;         // the cache's id, never 0; one that ended may have had it
  std::uint32_t slow_calls = 0;
  RunCache<A, Config>* runs = nullptr;  // made when the thread first allocates a large block
  typename A::template atomic<RunsUse> runs_use{RunsUse::kNone};
  // Another thread uses `runs`: the owner leaves it alone. Written under the registry's lock.
  typename A::template atomic<std::uint32_t> runs_closed{0};
  std::uint8_t exit_rounds = 0;
  profile::MarkWeights mark_weights;
  // Set while the owner is inside the engine (sync/fork_gate.hpp); written by the owner, read by threads that fork. A fork's
  // child must not trust a cache whose owner was inside when the process was copied.
  typename A::template atomic<std::uint32_t> inside{0};
  typename A::template atomic<std::int32_t> thread{0};            // the system's id of the owner; 0: unknown
  typename A::template atomic<ScopedHeap*> heap_in_use{nullptr};  // that the owner is amid a call of: a HeapMap's mark
  ThreadCache* spare_detour = nullptr;                            // for the owner's next count or scope
  HeapFrees<A> heap_frees;                                        // the array of class kOfHeaps
  Counter remote_frees{0};                                        // slots given back to spans that another thread used last
  ThreadCache* next_ended = nullptr;                              // the next cache whose thread ended while another forked
  ThreadCache* next = nullptr;
  ThreadCache* previous = nullptr;
  // The record of the direct block that the thread allocated last, or null. Others may have freed the block, and the record
  // may be another's.
  MappedBlock<A>* last_mapped = nullptr;
  bool may_have_mapping = false;  // the thread has freed that block since, and others may have taken its mapping

  [[nodiscard]] void* pop(SizeClass c) noexcept {
    void** const t = top[c];
    void* const slot = t[-1];
    if (slot != nullptr) [[likely]]
      top[c] = t - 1;
    return slot;
  }
  [[nodiscard]] bool push(SizeClass c, void* slot) noexcept {
    void** const t = top[c];
    if (t == limit[c]) [[unlikely]]
      return false;
    *t = slot;
    top[c] = t + 1;
    return true;
  }
  [[nodiscard]] bool is_last_mapped(const void* block) const noexcept {
    return last_mapped != nullptr &&
           last_mapped->start.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(block);
  }
  // The observers' marks in the array of class c end; its slots stay.
  [[gnu::cold, gnu::noinline]] void end_marks(SizeClass c) noexcept {
    auto& bin = bins[c];
    top[c] = std::remove(bin.array + 1, top[c], nullptr);
    mark_weights.drop_oldest(c.index(), bin.capacity);
    bin.marks = 0;
  }
  [[nodiscard]] std::size_t entries(SizeClass c) const noexcept {
    return bins[c].array == nullptr ? 0 : static_cast<std::size_t>(top[c] - (bins[c].array + 1));
  }
};

// Tells readers outside the process where all this lies, except the addresses.
template <class Cache>
[[nodiscard]] LiveThreads live_layout_of() noexcept {
  using Bin = typename Cache::Bin;
  const auto at = [](auto member) { return static_cast<std::uint32_t>(base::member_offset<Cache>(member)); };
  const auto in_bin = [](auto member) { return static_cast<std::uint32_t>(base::member_offset<Bin>(member)); };
  LiveThreads layout{};
  layout.record_bytes = sizeof(Cache);
  layout.next = at(&Cache::next);
  layout.thread = at(&Cache::thread);
  layout.granted_bytes = at(&Cache::granted);
  layout.remote_frees = at(&Cache::remote_frees);
  layout.tops = at(&Cache::top);
  layout.bins = at(&Cache::bins);
  layout.bin_stride = sizeof(Bin);
  layout.bin_array = in_bin(&Bin::array);
  layout.bin_refills = in_bin(&Bin::refills);
  layout.bin_drains = in_bin(&Bin::drains);
  layout.bin_capacity = in_bin(&Bin::capacity);
  layout.bin_marks = in_bin(&Bin::marks);
  return layout;
}

// An array for `capacity` entries and the sentinel, in bytes.
[[nodiscard]] constexpr std::size_t bin_array_bytes(std::size_t capacity) noexcept { return (capacity + 1) * sizeof(void*); }

}  // namespace freehold::alloc
