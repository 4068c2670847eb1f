// SPDX-License-Identifier: MIT
// The concepts of a private heap that the adapters to the C++ library need. PrivateHeap and OwnerLockedHeap fulfil them.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace freehold::heap {

// Gives blocks and takes them back.
template <class H>
concept BlockSource = requires(H& heap, void* block, std::size_t bytes) {
  { heap.allocate(bytes, bytes) } noexcept -> std::same_as<void*>;
  { heap.deallocate(block, bytes, bytes) } noexcept;
  { heap.deallocate(block) } noexcept;
};

// It also finds the heap of a block, and ends all blocks.
template <class H>
concept PrivateHeapLike = BlockSource<H> && requires(H& heap, void* block) {
  { H::heap_of(block) } noexcept -> std::same_as<H&>;
  { heap.release_all() } noexcept -> std::same_as<std::size_t>;
};

// heap_allocator.hpp.
template <class T, BlockSource Heap>
class HeapAllocator;

// realloc for a heap that knows a block's usable size, and whether it may stay where it is.
template <class Heap>
[[nodiscard]] void* reallocate_in(Heap& heap, void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return heap.allocate(bytes);
  const std::size_t usable = heap.usable_size(block);
  if (usable == 0) return nullptr;  // no block of this heap, and the handler of fatal() returned
  if (heap.may_stay(block, bytes)) return block;
  void* const fresh = heap.allocate(bytes);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, block, std::min(bytes, usable));
  heap.deallocate(block);
  return fresh;
}

}  // namespace freehold::heap
