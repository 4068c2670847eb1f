// SPDX-License-Identifier: MIT
// thread_alloc.h as the article has it: pages owned by threads, a mutex, a pending list and a threshold for each owner.
// Blocks that are too large for a page, or aligned to more than a slot, come from the engine, its upstream. Heap::deallocate
// tells the two apart.
#include "freehold/alloc/engine.hpp"
#include "freehold/thread_alloc.h"
#include "freehold/thread_alloc/owner_pages_heap.hpp"

namespace {

namespace ta = freehold::thread_alloc;
using Heap = ta::OwnerPagesHeap<ta::MutexPages<ta::EngineUpstream>>;

constexpr size_t kSlotAlignment = 16;  // bytes

}  // namespace

extern "C" {

void* thread_alloc(size_t bytes) noexcept { return Heap::allocate(bytes); }
void* thread_alloc_aligned(size_t alignment, size_t bytes) noexcept {
  return alignment <= kSlotAlignment ? Heap::allocate(bytes) : freehold::alloc::allocate_aligned(alignment, bytes);
}
void* thread_realloc(void* block, size_t bytes) noexcept { return Heap::reallocate(block, bytes); }
void thread_free(void* block) noexcept { Heap::deallocate(block); }

}  // extern "C"
