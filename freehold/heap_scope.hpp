// SPDX-License-Identifier: MIT
// Scopes: while a HeapScope lives, every malloc, operator new, strdup and std::string of its thread, in whatever library,
// takes its block from a private heap. Frees find the heap by themselves.
//
//   #include <freehold/heap_scope.hpp>
//
//   freehold::PrivateHeap orders({.name = "orders", .limit_bytes = 64 << 20});
//   {
//     freehold::HeapScope scope(orders);
//     parse(request);
//   }
//
// The program's malloc must be Freehold's: freehold::malloc or freehold::malloc_shared is linked. Without it the linker does
// not find freehold_scope_engine.
// C has the same in freehold/heap_scope.h. Guide: docs/heap-scopes.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/heap.hpp"

namespace freehold {

/// The calling thread's blocks come from a private heap, or, within the scope of one, from no heap. Scopes nest.
/// free, delete and realloc take the blocks back in any thread, in a scope or not. A block that realloc moves goes where a
/// new one would be. Where the heap refuses, because of its limit, malloc returns null and new throws: for this scope alone.
/// Threads: constructed and destroyed by one thread, in the reverse order; a coroutine must leave it before it is suspended.
/// longjmp out of a scope leaves the thread in it. Where the heap ends first, the scope is of no heap from then on.
/// Cost: five nanoseconds, and some for each block that the thread keeps free; docs/heap-scopes.md.
class HeapScope {
 public:
  /// Begins a scope of a heap.
  /// @param heap  outlives the scope; blocks may outlive the heap, whose memory goes back with the last of them then
  /// @throws std::bad_alloc
  explicit HeapScope(PrivateHeap& heap) : HeapScope(&heap) {}
  /// The same; null: of no heap, for a callee whose blocks outlive the scope around this one.
  /// @param heap  a heap, or null
  /// @throws std::bad_alloc
  explicit HeapScope(PrivateHeap* heap) : engine_(*freehold_scope_engine()) {
    alloc::ScopedHeap* scoped = heap == nullptr ? nullptr : heap->scoped();
    if (heap != nullptr && (scoped == nullptr || scoped->engine != &engine_)) [[unlikely]] {
      scoped = heap::begin_scopes(*heap, engine_);
      if (scoped == nullptr) base::out_of_memory();
    }
    if (!engine_.enter(scoped)) base::out_of_memory();
  }
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;
  ~HeapScope() { engine_.leave(); }

  /// The heap that the calling thread's blocks come from: what a task takes with it to another thread.
  /// @return null: from no heap. Cost: a call.
  [[nodiscard]] static PrivateHeap* current() noexcept {
    const alloc::ScopedHeap* const scoped = freehold_scope_engine()->current();
    return scoped == nullptr ? nullptr : static_cast<PrivateHeap*>(scoped->heap);
  }

 private:
  const alloc::ScopeEngine& engine_;
};

}  // namespace freehold
