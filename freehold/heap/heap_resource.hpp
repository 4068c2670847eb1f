// SPDX-License-Identifier: MIT
// A private heap as a std::pmr::memory_resource.
//
//   heap::PrivateHeap heap;
//   heap::HeapResource resource(heap);
//   std::pmr::vector<std::pmr::string> words(&resource);
//
// Two resources are equal if they are of the same heap; in a program without run-time type information each is equal to
// itself only, so that moving between containers of two of them copies. Threads: those of the heap. Cost: the heap's and a
// virtual call. Errors: std::bad_alloc.
#pragma once
#include <cstddef>
#include <memory_resource>
#include <new>

#include "freehold/base/check.hpp"
#include "freehold/base/rtti.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

/// A private heap as a std::pmr::memory_resource.
/// @tparam Heap  the heap
/// Threads: those of the heap. Errors: std::bad_alloc.
template <BlockSource Heap = PrivateHeap>
class HeapResource final : public std::pmr::memory_resource {
 public:
  /// A resource on a heap.
  /// @param heap  must outlive the resource and what is allocated from it
  explicit HeapResource(Heap& heap) noexcept : heap_(&heap) {}
  /// The heap.
  [[nodiscard]] Heap& heap() const noexcept { return *heap_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const block = heap_->allocate(bytes, alignment);
    if (block == nullptr) base::out_of_memory();
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    heap_->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    if constexpr (base::kHasRtti) {
      const auto* const same = dynamic_cast<const HeapResource*>(&other);
      return same != nullptr && same->heap_ == heap_;
    } else {
      return this == &other;
    }
  }

  Heap* heap_;
};

}  // namespace freehold::heap

namespace freehold {
using heap::HeapResource;
}  // namespace freehold
