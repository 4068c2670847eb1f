// Single objects in private heaps: operator new and delete for a class, and a unique_ptr.
//
//   struct Order : heap::InHeap<heap::OwnerLockedHeap> { ... };
//   Order* order = new (heap) Order(customer);
//   delete order;                                      // finds its heap by itself
//
//   auto order = heap::make_unique<Order>(heap, customer);   // any type
//
// Threads: those of the heap, for the end of an object, too. Cost: the heap's; delete reads one line of the slab more.
// Errors: std::bad_alloc.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/base/out_of_memory.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

template <PrivateHeapLike Heap = PrivateHeap>
struct InHeap {
  static void* operator new(std::size_t bytes, Heap& heap) { return or_throw(heap.allocate(bytes)); }
  static void* operator new(std::size_t bytes, std::align_val_t alignment, Heap& heap) {
    return or_throw(heap.allocate(bytes, static_cast<std::size_t>(alignment)));
  }
  // Where a constructor threw, and at the object's end.
  static void operator delete(void* block, Heap& heap) noexcept { heap.deallocate(block); }
  static void operator delete(void* block, std::align_val_t, Heap& heap) noexcept { heap.deallocate(block); }
  static void operator delete(void* block) noexcept { give_back(block); }
  static void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }

  static void* operator new(std::size_t) = delete;  // in which heap?
  static void* operator new[](std::size_t) = delete;

 private:
  static void* or_throw(void* block) {
    if (block == nullptr) base::out_of_memory();
    return block;
  }
  static void give_back(void* block) noexcept {
    if (block != nullptr) Heap::heap_of(block).deallocate(block);
  }
};

// Ends an object of a private heap. A pointer of the object's own type is needed, not of a base.
template <class T, PrivateHeapLike Heap = PrivateHeap>
class HeapDelete {
 public:
  HeapDelete() noexcept = default;  // for a pointer without an object
  explicit HeapDelete(Heap& heap) noexcept : heap_(&heap) {}
  void operator()(T* object) const noexcept {
    std::destroy_at(object);
    heap_->deallocate(object, sizeof(T), alignof(T));
  }

 private:
  Heap* heap_ = nullptr;
};

template <class T, PrivateHeapLike Heap = PrivateHeap>
using UniquePtr = std::unique_ptr<T, HeapDelete<T, Heap>>;

// A new object T(args...) in `heap`. Errors: std::bad_alloc, and what T's constructor throws.
template <class T, PrivateHeapLike Heap, class... Args>
[[nodiscard]] UniquePtr<T, Heap> make_unique(Heap& heap, Args&&... args) {
  void* const block = heap.allocate(sizeof(T), alignof(T));
  if (block == nullptr) base::out_of_memory();
  base::Undo undo([&] { heap.deallocate(block, sizeof(T), alignof(T)); });
  T* const object = ::new (block) T(std::forward<Args>(args)...);
  undo.dismiss();
  return UniquePtr<T, Heap>(object, HeapDelete<T, Heap>(heap));
}

}  // namespace freehold::heap
