// SPDX-License-Identifier: MIT
// thread_alloc.h on Freehold's engine.
#include "freehold/alloc/engine.hpp"
#include "freehold/alloc/front/fast_path.hpp"
#include "freehold/thread_alloc.h"

namespace alloc = freehold::alloc;

extern "C" {

void* thread_alloc(size_t bytes) noexcept { return alloc::allocate_inline(bytes); }
void* thread_alloc_aligned(size_t alignment, size_t bytes) noexcept { return alloc::allocate_aligned(alignment, bytes); }
void* thread_realloc(void* block, size_t bytes) noexcept { return alloc::reallocate(block, bytes); }
void thread_free(void* block) noexcept { alloc::deallocate_inline(block); }

}  // extern "C"
