// SPDX-License-Identifier: MIT
// Scopes: what the engine that serves malloc and a private heap ask of each other, so that a thread's malloc takes its
// blocks from the heap, and free finds the heap of a block. The heap may be of another shared object than the engine, with
// its own engine: only this table connects them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

struct ScopedHeap;

// The engine asks these of a heap: any thread, while its scope is open or the block lives. A heap that has
// ended answers all of them except allocate(), as long as blocks of it live.
struct HeapCalls {
  // Null: the limit or memory.
  void* (*allocate)(ScopedHeap& heap, std::size_t bytes, std::size_t alignment) noexcept;
  void (*deallocate)(ScopedHeap& heap, void* block) noexcept;
  std::size_t (*usable_size)(const ScopedHeap& heap, const void* block) noexcept;
  // Returns whether a block of `bytes` may be where this one is.
  bool (*may_stay)(const ScopedHeap& heap, const void* block, std::size_t bytes) noexcept;
  // Up to `most` blocks of `bytes`, at least one unless the limit or memory forbids; returns how many.
  std::size_t (*take)(ScopedHeap& heap, std::size_t bytes, void** to, std::size_t most) noexcept;
  // Frees the first of n slots, and others that are the heap's. Returns how many are left, at the beginning.
  std::size_t (*give)(ScopedHeap& heap, void** blocks, std::size_t n) noexcept;
  // Empties n entries of HeapFrees: to `slots` what malloc would get, if there is room, the rest to `others`. Returns that.
  std::size_t (*sort)(const ScopedHeap& heap, void** frees, std::size_t n, struct ScopeSlots& slots, void** others) noexcept;
};

struct ScopeEngine;

// A heap as scopes know it.
struct ScopedHeap {
  const HeapCalls* calls = nullptr;
  void* heap = nullptr;
  const ScopeEngine* engine = nullptr;  // whose scopes use it
  bool is_kept = false;                 // threads may keep free slots and freed blocks of it
  const char* name = "";                // of a heap that has not ended
};

// A shared object with private heaps has this for trim(). It lives for ever.
struct HeapOwner {
  std::size_t (*trim_all)() noexcept;
  // In checked mode, where blocks of a heap lie anywhere: f(context, heap) for the heap of the block. False: none of these.
  bool (*with_heap_of)(const void* block, void (*f)(void* context, ScopedHeap& heap) noexcept, void* context) noexcept;
  HeapOwner* next = nullptr;
};

// A heap asks these of the engine.
struct ScopeEngine {
  // The calling thread's blocks come from the heap from now on; null: from no heap. False: no memory.
  bool (*enter)(ScopedHeap* heap) noexcept;
  // Ends the calling thread's newest scope. Pre: there is one.
  void (*leave)() noexcept;
  // Returns the heap of the calling thread's newest scope; null: no scope, or one of no heap.
  ScopedHeap* (*current)() noexcept;
  // Once for each owner: before its first scope.
  void (*add_owner)(HeapOwner& owner) noexcept;
  // The 64 KiB around the address are the heap's: a slab, or the beginning of a large block. False: no memory.
  bool (*put)(const void* address, bool is_slab, ScopedHeap& heap) noexcept;
  // They are no heap's any more.
  void (*remove)(const void* address) noexcept;
  // Returns when no thread is amid a call for a block of this heap that began before all its memory was put to another one.
  void (*wait_for_users)(const ScopedHeap& heap) noexcept;
  // Gives back what threads keep of the heap; null: of every heap. What another thread keeps for an open scope stays.
  void (*collect)(ScopedHeap* heap) noexcept;
  // These slots are no blocks.
  void (*subtract_kept)(const ScopedHeap& heap, std::uint64_t& blocks, std::uint64_t& bytes) noexcept;
  // The heap ends: collect(), and its open scopes are of no heap from now on. Checked mode reports them.
  void (*end)(ScopedHeap& heap) noexcept;
  // Returns whether the calling thread is inside a call for a block of a heap: then it is a handler of signals that came
  // during it.
  bool (*is_amid_call)() noexcept;
};

// The engine of this shared object.
extern const ScopeEngine kScopeEngine;

// As allocate_aligned() and deallocate(), of no scope and no count: memory of a private heap.
[[nodiscard]] void* allocate_slab(std::size_t bytes, std::size_t alignment) noexcept;
void deallocate_slab(void* slab) noexcept;
[[nodiscard]] std::size_t slab_bytes(const void* slab) noexcept;  // 0: that is none

}  // namespace freehold::alloc

// Belongs to the library whose malloc the program has: freehold::malloc or libfreehold.so.
extern "C" const freehold::alloc::ScopeEngine* freehold_scope_engine() noexcept;
