// SPDX-License-Identifier: MIT
// A private heap that scopes use: what the engine asks of it, its first scope, and its end before its blocks.
//
//   alloc::ScopedHeap* scoped = scoped_heap(heap, engine);   // null: no memory, or another engine's scopes use it
//
// At the end all that the heap has is put to an EndedHeap, which lies in a page of the heap. Once no thread is amid a call
// of the heap itself, the parts with blocks in use are the EndedHeap's, and the rest goes back.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
#include "freehold/alloc/scope/scope_slots.hpp"
#include "freehold/alloc/size_classes.hpp"
#include "freehold/base/bits.hpp"
#include "freehold/heap/ended_heap.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

template <class Heap>
struct ScopedHeaps;

template <sync::Atomics A, class Geometry, SlabSource Source, class Registration, class Orders>
struct ScopedHeaps<BasicPrivateHeap<A, Geometry, Source, Registration, Orders>> {
  using Heap = BasicPrivateHeap<A, Geometry, Source, Registration, Orders>;
  struct Scopes : Heap::Scopes {
    Scopes(Heap& heap, const alloc::ScopeEngine& engine) noexcept
        : Heap::Scopes{{&kCalls, &heap, &engine, may_be_kept(heap), heap.name()}, &end},
          ended(engine, heap.slabs().source(), heap.name()) {}
    EndedHeap<A, Geometry, Source, Registration, Orders> ended;
  };

  using Classes = typename Geometry::Classes;
  using Slots = alloc::ScopeSlots;
  using SlabType = Slab<A, Geometry>;

  // The slab of a block that is no large one.
  [[nodiscard]] static const SlabType* slab_of(const void* block) noexcept {
    return reinterpret_cast<const SlabType*>(reinterpret_cast<std::uintptr_t>(block) &
                                             ~std::uintptr_t{SlabType::kBytes - 1});
  }
  // Threads may keep freed blocks beside the heap, unless one may wait for room: it has to hear of each free.
  [[nodiscard]] static bool may_be_kept(const Heap& heap) noexcept {
    return heap.options_.when_limited != WhenLimited::kWait && !heap.shards_.slabs().is_checked();
  }
  [[nodiscard]] static std::size_t take(Heap& heap, std::size_t bytes, void** to, std::size_t most) noexcept {
    std::size_t n = 0;
    auto& shards = heap.shards_;
    if (!heap.is_looked_at() && !heap.slabs().is_near_limit())
      if (const auto locked = shards.try_lock_shard(); locked.shard != nullptr) {
        const unsigned c = Heap::class_of(bytes, Heap::kDefaultAlignment);
        while (n < most && (to[n] = shards.pop(locked.shard->bins[c], c)) != nullptr) ++n;
        shards.unlock(locked);
      }
    return n != 0 ? n : (to[0] = heap.allocate(bytes)) != nullptr;
  }
  [[nodiscard]] static std::size_t give(Heap& heap, void** blocks, std::size_t n) noexcept {
    auto& shards = heap.shards_;
    const auto locked = heap.is_looked_at() ? typename Heap::Shards::LockedShard() : shards.try_lock_shard();
    std::size_t left = 0;
    for (std::size_t i = 0; i < n; ++i) {
      void* const block = blocks[i];
      if (slab_of(block)->heap.load(std::memory_order_relaxed) != &heap) [[unlikely]]
        blocks[left++] = block;
      else if (locked.shard == nullptr)
        heap.deallocate(block);
      else if (const unsigned c = Heap::SlabsType::class_in(*slab_of(block), block); c != Heap::SlabsType::kNoClass)
        shards.push_into(locked.shard->bins[c], c, static_cast<typename Heap::Shards::Free*>(block));
    }
    if (locked.shard != nullptr) shards.unlock(locked);
    return left;
  }
  // malloc's class whose slots are as large as those of a slab's page; 0: none is.
  static constexpr std::array<std::uint8_t, 256> kMallocClasses = [] {
    using Malloc = alloc::SizeClasses;
    std::array<std::uint8_t, 256> classes{};
    for (unsigned c = 0; c < Classes::kCount; ++c)
      if (const std::size_t bytes = Classes::slot_bytes(c); bytes <= Malloc::kTableBytes)
        if (const auto of = Malloc::class_of(bytes); Malloc::slot_bytes(of) == bytes)
          classes[c + 1] = static_cast<std::uint8_t>(of.index());
    return classes;
  }();
  [[nodiscard]] static std::size_t sort(const Heap& heap, void** frees, std::size_t n, Slots& slots,
                                        void** others) noexcept {
    const void* const mine = heap.is_looked_at() ? static_cast<const void*>(&slots) : &heap;  // no heap: each comes by
    void*** const tops = slots.tops;
    auto* const entries = reinterpret_cast<typename A::template atomic<void*>*>(frees);
    std::size_t left = 0;
    std::uint64_t filled = slots.filled;
    for (std::size_t i = 0; i < n; ++i) {
      void* const block = entries[i].load(std::memory_order_relaxed);  // relaxed, both: they are the caller's alone now
      entries[i].store(nullptr, std::memory_order_relaxed);
      if (block == nullptr) [[unlikely]]
        continue;
      const SlabType& slab = *slab_of(block);
      const unsigned c = kMallocClasses[slab.page_class[slab.page_of(block)].load()];
      void** const top = tops[c];
      // The array of no class is always full.
      if (slab.heap.load(std::memory_order_relaxed) == mine && top != slots.first(c) + Slots::kSlots) [[likely]] {
        *top = block;
        tops[c] = top + 1;
        filled |= base::bit(c);
      } else {
        others[left++] = block;
      }
    }
    slots.filled = filled;
    return left;
  }

  [[nodiscard]] static Heap& of(const alloc::ScopedHeap& heap) noexcept { return *static_cast<Heap*>(heap.heap); }
  static constexpr alloc::HeapCalls kCalls{
      [](alloc::ScopedHeap& heap, std::size_t bytes, std::size_t alignment) noexcept {
        return of(heap).allocate(bytes, alignment);
      },
      [](alloc::ScopedHeap& heap, void* block) noexcept { of(heap).deallocate(block); },
      [](const alloc::ScopedHeap& heap, const void* block) noexcept { return of(heap).usable_size(block); },
      [](const alloc::ScopedHeap& heap, const void* block, std::size_t bytes) noexcept {
        return of(heap).may_stay(block, bytes);
      },
      [](alloc::ScopedHeap& heap, std::size_t bytes, void** to, std::size_t most) noexcept {
        return take(of(heap), bytes, to, most);
      },
      [](alloc::ScopedHeap& heap, void** blocks, std::size_t n) noexcept { return give(of(heap), blocks, n); },
      [](const alloc::ScopedHeap& heap, void** frees, std::size_t n, Slots& slots, void** others) noexcept {
        return sort(of(heap), frees, n, slots, others);
      }};

  [[nodiscard]] static alloc::ScopedHeap* find(Heap& heap, const alloc::ScopeEngine& engine) noexcept {
    auto* const scopes = heap.scopes_.load(Orders::kFind);
    if (scopes == nullptr) [[unlikely]]
      return begin(heap, engine);
    return scopes->live.engine == &engine ? &scopes->live : nullptr;
  }
  [[gnu::noinline]] static alloc::ScopedHeap* begin(Heap& heap, const alloc::ScopeEngine& engine) noexcept {
    heap.registration_.template begin_scopes<decltype(Scopes::ended)>(engine);
    const typename Heap::All all(heap.shards_);
    if (heap.scoped() != nullptr) return find(heap, engine);  // another thread was faster
    auto& slabs = heap.slabs();
    void* const room = slabs.is_checked()     ? alloc::allocate_slab(sizeof(Scopes), alignof(Scopes))
                       : heap.shards_.start() ? slabs.take_internal(sizeof(Scopes))
                                              : nullptr;
    if (room == nullptr) return nullptr;
    auto* const scopes = ::new (room) Scopes(heap, engine);
    if (!slabs.begin_scopes(scopes->live)) return nullptr;  // the page stays
    heap.registration_.set_scoped(scopes->live);
    heap.scopes_.store(scopes, Orders::kPublish);
    return &scopes->live;
  }
  static void end(Heap& heap) noexcept {
    auto& scopes = *static_cast<Scopes*>(heap.scopes_.load(std::memory_order_relaxed));  // relaxed: at the heap's end
    scopes.live.engine->end(scopes.live);
    if (heap.slabs().is_checked()) {
      heap.registration_.end([&] { heap.slabs().orphan_checked(); });
      return alloc::deallocate_slab(&scopes);
    }
    {
      // Another thread may be amid a free, or amid an allocation, whose slab is the ended heap's, too.
      const sync::Guard guard(heap.shards_.lock());
      (void)heap.slabs().begin_scopes(scopes.ended.scoped());
    }
    scopes.live.engine->wait_for_users(scopes.live);
    heap.registration_.end([&] {
      heap.shards_.reclaim();  // alone, and without the locks, which go back, too
      heap.shards_.hand_over(scopes.ended, heap.stats_locked());
    });
    scopes.ended.finish();
  }
};

// A scope of this heap needs these of it. Threads: any. Cost: a load; the first scope: O(slabs and large blocks), with the
// heap locked.
template <class Heap>
[[nodiscard]] alloc::ScopedHeap* scoped_heap(Heap& heap, const alloc::ScopeEngine& engine) noexcept {
  return ScopedHeaps<Heap>::find(heap, engine);
}

}  // namespace freehold::heap
