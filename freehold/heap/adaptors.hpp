// What stands before a heap or a memory resource: one that counts and limits, and one that goes on elsewhere.
//
//   heap::PrivateHeap small({.limit_bytes = 1 << 20}), large;
//   heap::FallbackHeap both(small, large);                      // what does not fit into the first goes to the second
//   std::map<int, int, std::less<>, heap::HeapAllocator<std::pair<const int, int>, heap::FallbackHeap<>>> map{both};
//
//   heap::CountingResource counted(resource, 64 << 20);         // any std::pmr resource, at most 64 MiB at once
//   std::pmr::vector<int> numbers(&counted);
//   report(counted.stats());
//
// Threads: those of what stands behind (CountingResource adds atomics of its own). Cost: FallbackHeap a look at the block's
// slab to give it back; CountingResource two to four atomics on one line for each call.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>

#include "freehold/base/bits.hpp"
#include "freehold/base/out_of_memory.hpp"
#include "freehold/base/undo.hpp"
#include "freehold/heap/private_heap.hpp"

namespace freehold::heap {

// Two heaps of one kind as one: blocks come from the second where the first has none. Both must outlive it. It is used as a
// heap is, and has no limit, statistics or end of its own: those are the two heaps'.
template <PrivateHeapLike Heap = PrivateHeap>
class FallbackHeap {
 public:
  static constexpr std::size_t kDefaultAlignment = Heap::kDefaultAlignment;

  FallbackHeap(Heap& first, Heap& second) noexcept : first_(&first), second_(&second) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    void* const block = first_->allocate(bytes, alignment);
    return block != nullptr ? block : second_->allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    if (block != nullptr) home(block).deallocate(block, bytes, alignment);
  }
  void deallocate(void* block) noexcept {
    if (block != nullptr) home(block).deallocate(block);
  }
  // Moves the block to the other heap where its own has no room. Null: the block is untouched.
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
  [[nodiscard]] std::size_t usable_size(const void* block) const noexcept { return home(block).usable_size(block); }
  // Which of the two a block lies in.
  [[nodiscard]] Heap& home(const void* block) const noexcept {
    return &Heap::heap_of(block) == second_ ? *second_ : *first_;
  }

  void release_all() noexcept {
    first_->release_all();
    second_->release_all();
  }

 private:
  Heap* first_;
  Heap* second_;
};

struct ResourceStats {
  std::uint64_t live_objects = 0;
  std::uint64_t live_bytes = 0;   // as asked for
  std::uint64_t most_bytes = 0;   // that were live at once
  std::uint64_t allocations = 0;  // ever
  std::uint64_t refused = 0;      // by the limit
  std::uint64_t limit_bytes = 0;
};

// Counts what goes through it to another resource, and bounds it.
//   Invariant: live_bytes_ <= limit_bytes_, the bytes of allocations under way included.
class CountingResource final : public std::pmr::memory_resource {
 public:
  // Pre: `behind` outlives the resource. Units: bytes as asked for, without what `behind` adds.
  explicit CountingResource(std::pmr::memory_resource& behind, std::size_t limit_bytes = kNoLimit) noexcept
      : behind_(&behind), limit_bytes_(limit_bytes) {}

  // Each figure is exact at rest.
  [[nodiscard]] ResourceStats stats() const noexcept {
    // relaxed, here and below: statistics and a bound, they publish nothing.
    ResourceStats stats;
    stats.live_objects = live_objects_.load(std::memory_order_relaxed);
    stats.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    stats.most_bytes = most_bytes_.load(std::memory_order_relaxed);
    stats.allocations = allocations_.load(std::memory_order_relaxed);
    stats.refused = refused_.load(std::memory_order_relaxed);
    stats.limit_bytes = limit_bytes_;
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
    std::uint64_t most = most_bytes_.load(std::memory_order_relaxed);
    while (most < live + bytes && !most_bytes_.compare_exchange_weak(most, live + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }

  std::pmr::memory_resource* behind_;
  std::uint64_t limit_bytes_;
  alignas(base::kCacheLine) std::atomic<std::uint64_t> live_bytes_{0};
  std::atomic<std::uint64_t> live_objects_{0}, most_bytes_{0}, allocations_{0}, refused_{0};
};

}  // namespace freehold::heap

namespace freehold {
using heap::CountingResource;
using heap::FallbackHeap;
}  // namespace freehold
