// SPDX-License-Identifier: MIT
// Two adapters of heaps and memory resources: one that goes on in a second heap, and one that counts and limits.
//
//   heap::PrivateHeap small({.limit_bytes = 1 << 20}), large;
//   heap::FallbackHeap both(small, large);                      // what does not fit into the first goes to the second
//   std::map<int, int, std::less<>, heap::HeapAllocator<std::pair<const int, int>, heap::FallbackHeap<>>> map{both};
//
//   heap::CountingResource counted(resource, 64 << 20);         // any std::pmr resource, at most 64 MiB at once
//   std::pmr::vector<int> numbers(&counted);
//   report(counted.stats());
//
// Threads: those of the heaps or the resource behind (CountingResource adds its atomics). Cost: FallbackHeap a look at the
// block's slab to give it back; CountingResource two to four atomics on one line for each call.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

/// Two heaps of one kind as one: blocks come from the second if the first has no memory. It is used as a heap is, and its
/// limit, statistics and end are those of the two heaps.
/// @tparam Heap  the kind
template <PrivateHeapLike Heap = PrivateHeap>
class FallbackHeap {
 public:
  /// As the heaps'.
  static constexpr std::size_t kDefaultAlignment = Heap::kDefaultAlignment;

  /// Both heaps must outlive it.
  /// @param first   is asked first
  /// @param second  is asked when the first has no room
  FallbackHeap(Heap& first, Heap& second) noexcept : first_(&first), second_(&second) {}

  /// A block of at least `bytes` bytes; null: neither heap has room.
  /// @param bytes      size
  /// @param alignment  a power of two
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    void* const block = first_->allocate(bytes, alignment);
    return block != nullptr ? block : second_->allocate(bytes, alignment);
  }
  /// Frees a block.
  /// @param block      a block of one of the two heaps, or null
  /// @param bytes      the size that it was allocated with
  /// @param alignment  the alignment that it was allocated with
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    if (block != nullptr) home(block).deallocate(block, bytes, alignment);
  }
  /// The same without the size.
  /// @param block  a block of one of the two heaps, or null
  void deallocate(void* block) noexcept {
    if (block != nullptr) home(block).deallocate(block);
  }
  /// Grows or shrinks a block; moves it to the other heap where its own has no room.
  /// @param block  a block of one of the two heaps; null: as allocate()
  /// @param bytes  the new size
  /// @return the block. Null: the old block is untouched.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return allocate(bytes);
    Heap& from = home(block);
    if (void* const moved = from.reallocate(block, bytes); moved != nullptr) return moved;
    void* const moved = (&from == first_ ? second_ : first_)->allocate(bytes);
    if (moved == nullptr) return nullptr;
    const std::size_t had = from.usable_size(block);
    std::memcpy(moved, block, had < bytes ? had : bytes);
    from.deallocate(block);
    return moved;
  }
  /// The bytes of a block that may be used.
  /// @param block  a block of one of the two heaps
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept { return home(block).usable_size(block); }
  /// The heap that a block lies in.
  /// @param block  a block of one of the two heaps
  [[nodiscard]] Heap& home(const void* block) const noexcept {
    return &Heap::heap_of(block) == second_ ? *second_ : *first_;
  }

  /// An STL allocator on the two heaps, for containers and as what std::execution's get_allocator asks an environment for.
  /// @tparam T  the type of the objects; any other can be had from it by conversion
  template <class T = std::byte>
  [[nodiscard]] HeapAllocator<T, FallbackHeap> get_allocator() noexcept {
    return *this;
  }

  /// Ends every block of both heaps. @return how many blocks they refuse to end.
  std::size_t release_all() noexcept { return first_->release_all() + second_->release_all(); }

 private:
  Heap* first_;
  Heap* second_;
};

/// Figures of a CountingResource. Bytes are those that were asked for.
struct ResourceStats {
  std::uint64_t live_objects = 0;              ///< blocks that are in use
  std::uint64_t live_bytes = 0;                ///< bytes that are in use
  std::uint64_t peak_bytes = 0;                ///< the most bytes that were in use at once
  std::uint64_t allocations = 0;               ///< allocations that ever succeeded
  std::uint64_t refused = 0;                   ///< allocations that the limit refused
  std::optional<std::uint64_t> limit_bytes{};  ///< as the constructor was told
};

//   Invariant: live_bytes_ <= limit_bytes_, the bytes of allocations under way included.
/// Counts what goes through it to another resource, and bounds it.
/// Threads: those of the resource behind. Cost: two to four atomics on one line for each call.
class CountingResource final : public std::pmr::memory_resource {
 public:
  /// A resource before another one.
  /// @param behind       must outlive the resource
  /// @param limit_bytes  the most bytes in use at once, as asked for, without what `behind` adds; nullopt: no limit
  explicit CountingResource(std::pmr::memory_resource& behind,
                            std::optional<std::size_t> limit_bytes = std::nullopt) noexcept
      : behind_(&behind), limit_bytes_(limit_bytes.value_or(SIZE_MAX)) {}

  /// The figures; each is exact at rest.
  [[nodiscard]] ResourceStats stats() const noexcept {
    // relaxed, here and below: statistics and a bound, they publish nothing.
    ResourceStats stats;
    stats.live_objects = live_objects_.load(std::memory_order_relaxed);
    stats.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    stats.peak_bytes = peak_bytes_.load(std::memory_order_relaxed);
    stats.allocations = allocations_.load(std::memory_order_relaxed);
    stats.refused = refused_.load(std::memory_order_relaxed);
    if (limit_bytes_ != SIZE_MAX) stats.limit_bytes = limit_bytes_;
    return stats;
  }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!reserve(bytes)) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      base::out_of_memory();
    }
    base::Undo undo([&] { live_bytes_.fetch_sub(bytes, std::memory_order_relaxed); });
    void* const block = behind_->allocate(bytes, alignment);
    undo.dismiss();
    live_objects_.fetch_add(1, std::memory_order_relaxed);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    behind_->deallocate(block, bytes, alignment);
    live_objects_.fetch_sub(1, std::memory_order_relaxed);
    live_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    std::uint64_t live = live_bytes_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_bytes_ - live) return false;
    } while (!live_bytes_.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
    std::uint64_t most = peak_bytes_.load(std::memory_order_relaxed);
    while (most < live + bytes && !peak_bytes_.compare_exchange_weak(most, live + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }

  std::pmr::memory_resource* behind_;
  std::uint64_t limit_bytes_;
  alignas(base::kCacheLine) std::atomic<std::uint64_t> live_bytes_{0};
  std::atomic<std::uint64_t> live_objects_{0}, peak_bytes_{0}, allocations_{0}, refused_{0};
};

}  // namespace freehold::heap

namespace freehold {
using heap::CountingResource;
using heap::FallbackHeap;
}  // namespace freehold
