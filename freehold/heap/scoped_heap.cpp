// SPDX-License-Identifier: MIT
#include "freehold/heap/scoped_heap.hpp"

namespace freehold::heap {

alloc::ScopedHeap* begin_scopes(PrivateHeap& heap, const alloc::ScopeEngine& engine) noexcept {
  return scoped_heap(heap, engine);
}

}  // namespace freehold::heap
