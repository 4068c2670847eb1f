// SPDX-License-Identifier: MIT
// A private heap that scopes use: what the engine asks of it, its first scope, and its end before its blocks.
//
//   alloc::ScopedHeap* scoped = scoped_heap(heap, engine);   // null: no memory, or another engine's scopes use it
//
// At the end all that the heap has is put to an EndedHeap, which lies in a page of the heap. Once no thread is amid a call
// of the heap itself, the parts with blocks in use are the EndedHeap's, and the rest goes back.
#pragma once
#include <cstddef>
#include <new>

#include "freehold/alloc/scope/scope.hpp"
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
        : Heap::Scopes{{&kCalls, &heap, &engine}, &end}, ended(engine, heap.slabs().source(), heap.name()) {}
    EndedHeap<A, Geometry, Source, Registration, Orders> ended;
  };

  [[nodiscard]] static Heap& of(const alloc::ScopedHeap& heap) noexcept { return *static_cast<Heap*>(heap.heap); }
  static constexpr alloc::HeapCalls kCalls{
      [](alloc::ScopedHeap& heap, std::size_t bytes, std::size_t alignment) noexcept {
        return of(heap).allocate(bytes, alignment);
      },
      [](alloc::ScopedHeap& heap, void* block) noexcept { of(heap).deallocate(block); },
      [](const alloc::ScopedHeap& heap, const void* block) noexcept { return of(heap).usable_size(block); },
      [](const alloc::ScopedHeap& heap, const void* block, std::size_t bytes) noexcept {
        return of(heap).may_stay(block, bytes);
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
    if (heap.is_scoped()) return find(heap, engine);  // another thread was faster
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
    auto& scopes = *static_cast<Scopes*>(heap.scopes_.load(std::memory_order_relaxed));  // relaxed: as is_scoped()
    if (heap.slabs().is_checked()) {
      heap.registration_.end([&] { heap.slabs().orphan_checked(); });
      return alloc::deallocate_slab(&scopes);
    }
    {
      const sync::Guard guard(heap.shards_.lock());  // a free of a large block, or of a block where no shard is to be had
      (void)heap.slabs().put_all(scopes.ended.scoped());
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
