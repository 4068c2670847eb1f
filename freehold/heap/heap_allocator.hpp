// The C++ library's allocators on a private heap.
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

#include "freehold/base/out_of_memory.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

template <class T, BlockSource Heap = PrivateHeap>
class HeapAllocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;
  template <class U>
  struct rebind {
    using other = HeapAllocator<U, Heap>;
  };

  HeapAllocator(Heap& heap) noexcept : heap_(&heap) {}  // implicit, so that a heap can be given where an allocator is wanted
  template <class U>
  HeapAllocator(const HeapAllocator<U, Heap>& other) noexcept : heap_(&other.heap()) {}

  // Memory for n objects. Errors: std::bad_array_new_length, std::bad_alloc.
  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > ~std::size_t{0} / sizeof(T)) base::out_of_memory<std::bad_array_new_length>();
    void* const block = heap_->allocate(n * sizeof(T), alignof(T));
    if (block == nullptr) [[unlikely]]
      base::out_of_memory();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t n) noexcept { heap_->deallocate(block, n * sizeof(T), alignof(T)); }

  [[nodiscard]] Heap& heap() const noexcept { return *heap_; }

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
