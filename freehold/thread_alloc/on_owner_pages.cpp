// SPDX-License-Identifier: MIT
// thread_alloc.h on OwnerPages: pages owned by threads, a mutex, a pending list and a threshold for each owner.
// CMakeLists.txt builds it twice, and FREEHOLD_OWNER_PAGES is the policy. Blocks that are too large for a page, or aligned
// to more than a slot, come from the policy's upstream. Heap::deallocate tells the two apart.
#include "freehold/thread_alloc.h"
#include "freehold/thread_alloc/owner_pages_heap.hpp"

namespace {
using namespace freehold::thread_alloc;
using Heap = OwnerPagesHeap<FREEHOLD_OWNER_PAGES>;
}  // namespace

extern "C" {

void* thread_alloc(size_t bytes) noexcept { return Heap::allocate(bytes); }
void* thread_alloc_aligned(size_t alignment, size_t bytes) noexcept { return Heap::allocate_aligned(alignment, bytes); }
void* thread_realloc(void* block, size_t bytes) noexcept { return Heap::reallocate(block, bytes); }
void thread_free(void* block) noexcept { Heap::deallocate(block); }

}  // extern "C"
