// thread_alloc as the article has it: pages owned by threads, a mutex, a pending list and a threshold for each owner. What
// is too large for a page, or aligned to more than a slot, comes from the engine, its upstream; deallocate() tells the two
// apart.
#include "freehold/alloc/owner_pages_heap.hpp"
#include "freehold/malloc/thread_alloc.h"

namespace {

namespace alloc = freehold::alloc;
using Heap = alloc::OwnerPagesHeap<alloc::MutexPages<alloc::EngineUpstream>>;

constexpr size_t kSlotAlignment = 16;  // bytes

}  // namespace

extern "C" {

void* thread_alloc(size_t bytes) noexcept { return Heap::allocate(bytes); }
void* thread_alloc_aligned(size_t alignment, size_t bytes) noexcept {
  return alignment <= kSlotAlignment ? Heap::allocate(bytes) : alloc::allocate_aligned(alignment, bytes);
}
void* thread_realloc(void* block, size_t bytes) noexcept { return Heap::reallocate(block, bytes); }
void thread_free(void* block) noexcept { Heap::deallocate(block); }

}  // extern "C"
