// SPDX-License-Identifier: MIT
// An STL allocator on a private heap.
//
//   heap::OwnerLockedHeap heap;
//   std::map<int, Order, std::less<>, heap::HeapAllocator<std::pair<const int, Order>, heap::OwnerLockedHeap>> orders(
//       heap::HeapAllocator<std::pair<const int, Order>, heap::OwnerLockedHeap>{heap});
//
// A container goes with its heap: moved and swapped together with it; a copy takes the heap of its source, an assignment
// keeps its own. Two allocators are equal if they have the same heap. The heap must outlive the container, or release_all()
// ends the container's elements without their destructors: then the container itself must never be used or destroyed.
// Threads: those of the heap. Cost: the heap's; the size class of single elements is a constant.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include "freehold/base/check.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

/// An STL allocator on a private heap. Two are equal if they have the same heap.
/// @tparam T     the type of the objects
/// @tparam Heap  the heap
template <class T, BlockSource Heap = PrivateHeap>
class HeapAllocator {
 public:
  /// Requirements of an allocator.
  using value_type = T;
  /// An assignment by copy keeps the container's heap.
  using propagate_on_container_copy_assignment = std::false_type;
  /// A container goes with its heap when it is moved.
  using propagate_on_container_move_assignment = std::true_type;
  /// A container goes with its heap when it is swapped.
  using propagate_on_container_swap = std::true_type;
  /// Two allocators may have different heaps.
  using is_always_equal = std::false_type;
  // The same for objects of another type.
  template <class U>
  struct rebind {
    using other = HeapAllocator<U, Heap>;
  };

  /// Implicit: a heap may stand where an allocator is wanted.
  /// @param heap  must outlive the allocator and what is allocated from it
  HeapAllocator(Heap& heap) noexcept : heap_(&heap) {}
  /// The same heap for objects of another type.
  /// @param other  an allocator of them
  template <class U>
  HeapAllocator(const HeapAllocator<U, Heap>& other) noexcept : heap_(&other.heap()) {}

  /// Memory for n objects.
  /// @param n  how many
  /// Errors: std::bad_array_new_length, std::bad_alloc.
  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > ~std::size_t{0} / sizeof(T)) base::out_of_memory<std::bad_array_new_length>();
    void* const block = heap_->allocate(n * sizeof(T), alignof(T));
    if (block == nullptr) [[unlikely]]
      base::out_of_memory();
    return static_cast<T*>(block);
  }
  /// Frees what allocate(n) returned.
  /// @param block  the first object's memory
  /// @param n      how many
  void deallocate(T* block, std::size_t n) noexcept { heap_->deallocate(block, n * sizeof(T), alignof(T)); }

  /// The heap.
  [[nodiscard]] Heap& heap() const noexcept { return *heap_; }

  /// Returns whether both allocators use the same heap.
  /// @param a  one allocator
  /// @param b  another, perhaps of another type
  template <class U>
  friend bool operator==(const HeapAllocator& a, const HeapAllocator<U, Heap>& b) noexcept {
    return &a.heap() == &b.heap();
  }

 private:
  Heap* heap_;
};
// HeapAllocator(heap) is one of bytes, which converts into what a container wants.
template <BlockSource Heap>
HeapAllocator(Heap&) -> HeapAllocator<std::byte, Heap>;

}  // namespace freehold::heap

namespace freehold {
using heap::HeapAllocator;
}  // namespace freehold
