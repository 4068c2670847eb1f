// SPDX-License-Identifier: MIT
// Single objects in private heaps: operator new and delete for a class, and a unique_ptr.
//
//   struct Order : heap::InHeap<heap::OwnerLockedHeap> { ... };
//   Order* order = new (heap) Order(customer);
//   delete order;                                      // finds its heap by itself
//
//   auto order = heap::make_unique<Order>(heap, customer);   // any type
//   auto table = heap::make_unique<int[]>(heap, 1'000);      // value-initialised
//   heap::HeapPtr<Base> base = heap::make_unique<Derived>(heap);
//
// Threads: those of the heap, for the end of an object, too. Cost: the heap's; delete reads one line of the slab more.
// Errors: std::bad_alloc.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "freehold/base/check.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

/// A base class: its derived classes' objects are made by `new (heap) T(...)`, and ended by `delete`.
/// @tparam Heap  the kind of heap
template <PrivateHeapLike Heap = PrivateHeap>
struct InHeap {
  /// Memory for an object.
  /// @param bytes  the object's size
  /// @param heap   where it is to lie
  /// Errors: std::bad_alloc.
  static void* operator new(std::size_t bytes, Heap& heap) { return or_throw(heap.allocate(bytes)); }
  /// The same for a type of extended alignment.
  /// @param bytes      the object's size
  /// @param alignment  the object's alignment
  /// @param heap       where it is to lie
  static void* operator new(std::size_t bytes, std::align_val_t alignment, Heap& heap) {
    return or_throw(heap.allocate(bytes, static_cast<std::size_t>(alignment)));
  }
  /// Frees the memory of an object whose constructor threw.
  /// @param block  the object's memory
  /// @param heap   its heap
  static void operator delete(void* block, Heap& heap) noexcept { heap.deallocate(block); }
  /// The same for a type of extended alignment.
  /// @param block  the object's memory
  /// @param heap   its heap
  static void operator delete(void* block, std::align_val_t, Heap& heap) noexcept { heap.deallocate(block); }
  /// Frees the memory of an object that has ended.
  /// @param block  the object's memory, or null
  static void operator delete(void* block) noexcept { give_back(block); }
  /// The same for a type of extended alignment.
  /// @param block  the object's memory, or null
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

// The deleter of UniquePtr: ends an object of a private heap. A pointer of the object's own type is needed; HeapPtr is for
// pointers to a base.
template <class T, BlockSource Heap = PrivateHeap>
class HeapDelete {
 public:
  using object_type = T;

  HeapDelete() noexcept = default;  // for a pointer without an object
  explicit HeapDelete(Heap& heap) noexcept : heap_(&heap) {}
  void operator()(T* object) const noexcept { end(heap_, object); }
  [[nodiscard]] void* owner() const noexcept { return heap_; }
  static void end(void* heap, T* object) noexcept {
    std::destroy_at(object);
    static_cast<Heap*>(heap)->deallocate(const_cast<std::remove_cv_t<T>*>(object), sizeof(T), alignof(T));
  }

 private:
  Heap* heap_ = nullptr;
};

// The same for an array, whose length it knows.
template <class T, BlockSource Heap>
class HeapDelete<T[], Heap> {
 public:
  HeapDelete() noexcept = default;
  HeapDelete(Heap& heap, std::size_t count) noexcept : heap_(&heap), count_(count) {}
  void operator()(T* first) const noexcept {
    for (std::size_t i = count_; i > 0; --i) std::destroy_at(first + i - 1);
    heap_->deallocate(const_cast<std::remove_cv_t<T>*>(first), count_ * sizeof(T), alignof(T));
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  Heap* heap_ = nullptr;
  std::size_t count_ = 0;
};

/// The owner of an object, or of an array T[], in a private heap: a std::unique_ptr.
/// @tparam T     the type of the object
/// @tparam Heap  the heap
template <class T, BlockSource Heap = PrivateHeap>
using UniquePtr = std::unique_ptr<T, HeapDelete<T, Heap>>;

/// The owner of an object as one of a base class of it, from any heap; a UniquePtr converts into it.
/// @tparam Base  the base class
template <class Base>
using HeapPtr = std::unique_ptr<Base, base::EndAs<Base>>;

/// A new object T(args...) in a heap.
/// @param heap  must outlive the object
/// @param args  the constructor's arguments
/// Errors: std::bad_alloc, and what T's constructor throws.
template <class T, BlockSource Heap, class... Args>
  requires(!std::is_array_v<T>)
[[nodiscard]] UniquePtr<T, Heap> make_unique(Heap& heap, Args&&... args) {
  void* const block = heap.allocate(sizeof(T), alignof(T));
  if (block == nullptr) base::out_of_memory();
  base::Undo undo([&] { heap.deallocate(block, sizeof(T), alignof(T)); });
  T* const object = ::new (block) T(std::forward<Args>(args)...);
  undo.dismiss();
  return UniquePtr<T, Heap>(object, HeapDelete<T, Heap>(heap));
}

/// A new array of value-initialised elements: make_unique<T[]>(heap, count); get_deleter().size() is its length.
/// @param heap   must outlive the array
/// @param count  the number of elements
/// Errors: std::bad_array_new_length, std::bad_alloc, and what an element's constructor throws.
template <class T, BlockSource Heap>
  requires std::is_unbounded_array_v<T>
[[nodiscard]] UniquePtr<T, Heap> make_unique(Heap& heap, std::size_t count) {
  using Element = std::remove_cv_t<std::remove_extent_t<T>>;
  if (count > ~std::size_t{0} / sizeof(Element)) base::out_of_memory<std::bad_array_new_length>();
  void* const block = heap.allocate(count * sizeof(Element), alignof(Element));
  if (block == nullptr) base::out_of_memory();
  base::Undo undo([&] { heap.deallocate(block, count * sizeof(Element), alignof(Element)); });
  std::uninitialized_value_construct_n(static_cast<Element*>(block), count);
  undo.dismiss();
  return UniquePtr<T, Heap>(static_cast<Element*>(block), HeapDelete<T, Heap>(heap, count));
}

}  // namespace freehold::heap

namespace freehold {
using heap::InHeap;
}  // namespace freehold
