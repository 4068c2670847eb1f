// SPDX-License-Identifier: MIT
// Pools for the nodes of containers: an allocator and a std::pmr::memory_resource.
//
//   freehold::pool::NodePools<> pools(1'000'000);                       // at most so many nodes of each size
//   std::map<int, Order, std::less<>, freehold::PoolAllocator<std::pair<const int, Order>>> orders{pools};
//   freehold::PoolResource resource(pools);
//   std::pmr::unordered_set<int> ids(&resource);
//
// Only the container knows the size of its nodes. So there is a pool for each size, rounded up to 16 bytes, made when the
// first node of it is asked for. Blocks larger than 512 bytes or aligned beyond 16 come from operator new, and so does,
// through the allocator, more than one object at a time (a table of buckets, a vector).
//
//   Invariant: pools_[i] is null, or the pool of slots of (i + 1) * 16 bytes, from when it was made to the end.
//
// Threads: those of the pools below (any, for BestPool); construction and the end are one thread's. Errors: std::bad_alloc,
// also when a pool is full. Cost: one load more than the pool's own; a pool's address space when the first node of a size is
// made.
#pragma once
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <type_traits>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/sync/lock.hpp"

namespace freehold::pool {

template <class T, SlotPool P>
class PoolAllocator;

/// A pool for each size of node, made when the first node of it is asked for.
/// @tparam P  the pools below
/// Threads: any, for all but construction and destruction.
template <SlotPool P = NativePool<Best>>
class NodePools {
 public:
  /// Sizes are rounded up to a multiple of this.
  static constexpr std::size_t kStepBytes = 16;
  /// Larger nodes are not served.
  static constexpr std::size_t kMaxBytes = 512;
  static_assert(kStepBytes >= alignof(std::max_align_t));

  /// Pools that can grow take memory as they need it.
  /// @param max_nodes  of each size
  explicit NodePools(std::size_t max_nodes) noexcept : max_nodes_(max_nodes == 0 ? 1 : max_nodes) {}
  NodePools(const NodePools&) = delete;
  NodePools& operator=(const NodePools&) = delete;
  /// Ends every node's memory; destructors do not run.
  ~NodePools() {
    for (auto& pool : pools_) delete pool.load(std::memory_order_relaxed);  // relaxed: only this thread is left
  }

  /// An STL allocator on these pools, for containers and as what std::execution's get_allocator asks an environment for.
  /// @tparam T  the type of the objects; any other can be had from it by conversion
  template <class T = std::byte>
  [[nodiscard]] PoolAllocator<T, P> get_allocator() noexcept {
    return *this;
  }
  /// Returns whether single objects of this size and alignment come from a pool.
  /// @param bytes      the object's size
  /// @param alignment  the object's alignment
  [[nodiscard]] static constexpr bool serves(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= kMaxBytes && alignment <= kStepBytes;
  }
  /// A node's memory.
  /// @param bytes  its size; serves() must be true of it
  /// Errors: std::bad_alloc, also when the pool is full.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    const std::size_t i = index(bytes);
    P* pool = pools_[i].load(std::memory_order_acquire);  // acquire: pairs with make()
    if (pool == nullptr) [[unlikely]]
      pool = make(i);
    void* const node = pool->acquire();
    if (node == nullptr) [[unlikely]]
      base::out_of_memory();
    return node;
  }
  /// Frees a node.
  /// @param node   what allocate(bytes) returned
  /// @param bytes  its size
  void deallocate(void* node, std::size_t bytes) noexcept {
    pools_[index(bytes)].load(std::memory_order_acquire)->release(node);  // acquire: pairs with make()
  }
  /// The pool that serves objects of this size, for statistics; null: no object of the size was asked for.
  /// @param bytes  the objects' size
  [[nodiscard]] P* pool_of(std::size_t bytes) const noexcept {
    return pools_[index(bytes)].load(std::memory_order_acquire);  // acquire: pairs with make()
  }

 private:
  static constexpr std::size_t index(std::size_t bytes) noexcept { return bytes == 0 ? 0 : (bytes - 1) / kStepBytes; }

  [[gnu::noinline]] P* make(std::size_t i) {
    const sync::Guard guard(lock_);
    if (P* const made = pools_[i].load(std::memory_order_relaxed); made != nullptr) return made;  // relaxed: under the lock
    PoolShape shape;
    shape.slots = max_nodes_;
    shape.slot_bytes = (i + 1) * kStepBytes;
    shape.alignment = kStepBytes;
    P* pool = nullptr;
    if constexpr (std::constructible_from<P, const PoolShape&, Growth>)
      pool = new P(shape, Growth::kGrowing);
    else
      pool = new P(shape);
    pools_[i].store(pool, std::memory_order_release);  // release: publishes the pool to who loads it without the lock
    return pool;
  }

  std::size_t max_nodes_;
  sync::Mutex<sync::NativeAtomics> lock_;
  std::array<std::atomic<P*>, kMaxBytes / kStepBytes> pools_{};
};

/// An STL allocator for the nodes of containers. It goes with its pools when it is moved or swapped; an assignment by copy
/// keeps its own. Two are equal if they have the same pools, which must outlive the container.
/// @tparam T  the type of the objects
/// @tparam P  the pools below
template <class T, SlotPool P = NativePool<Best>>
class PoolAllocator {
 public:
  /// Requirements of an allocator.
  using value_type = T;
  /// An assignment by copy keeps the container's allocator.
  using propagate_on_container_copy_assignment = std::false_type;
  /// A container goes with its pools when it is moved.
  using propagate_on_container_move_assignment = std::true_type;
  /// A container goes with its pools when it is swapped.
  using propagate_on_container_swap = std::true_type;
  /// Two allocators may have different pools.
  using is_always_equal = std::false_type;
  // The same for objects of another type.
  template <class U>
  struct rebind {
    using other = PoolAllocator<U, P>;
  };

  /// Implicit: pools may stand where an allocator is wanted.
  /// @param pools  must outlive the allocator
  PoolAllocator(NodePools<P>& pools) noexcept : pools_(&pools) {}
  /// The same pools for objects of another type.
  /// @param other  an allocator of them
  template <class U>
  PoolAllocator(const PoolAllocator<U, P>& other) noexcept : pools_(&other.pools()) {}

  /// Memory for n objects: for one of them a node of the pools, else from operator new.
  /// @param n  how many
  /// Errors: std::bad_array_new_length, std::bad_alloc.
  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > ~std::size_t{0} / sizeof(T)) base::out_of_memory<std::bad_array_new_length>();
    if (from_pool(n)) return static_cast<T*>(pools_->allocate(sizeof(T)));
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{alignof(T)}));
  }
  /// Frees what allocate(n) returned.
  /// @param object  the first object's memory
  /// @param n       how many
  void deallocate(T* object, std::size_t n) noexcept {
    if (from_pool(n)) return pools_->deallocate(object, sizeof(T));
    ::operator delete(object, n * sizeof(T), std::align_val_t{alignof(T)});
  }
  /// The pools.
  [[nodiscard]] NodePools<P>& pools() const noexcept { return *pools_; }

  /// Returns whether both allocators use the same pools.
  /// @param a  one allocator
  /// @param b  another, perhaps of another type
  template <class U>
  friend bool operator==(const PoolAllocator& a, const PoolAllocator<U, P>& b) noexcept {
    return &a.pools() == &b.pools();
  }

 private:
  static constexpr bool from_pool(std::size_t n) noexcept { return n == 1 && NodePools<P>::serves(sizeof(T), alignof(T)); }

  NodePools<P>* pools_;
};
template <SlotPool P>
PoolAllocator(NodePools<P>&) -> PoolAllocator<std::byte, P>;

/// A std::pmr::memory_resource: everything of up to 512 bytes comes from pools, all else from another resource.
/// @tparam P  the pools below
template <SlotPool P = NativePool<Best>>
class PoolResource final : public std::pmr::memory_resource {
 public:
  /// A resource on pools.
  /// @param pools   must outlive the resource and what is allocated from it
  /// @param larger  serves what is larger than 512 bytes or aligned beyond 16
  explicit PoolResource(NodePools<P>& pools, std::pmr::memory_resource* larger = std::pmr::new_delete_resource()) noexcept
      : pools_(&pools), larger_(larger) {}
  /// The pools.
  [[nodiscard]] NodePools<P>& pools() const noexcept { return *pools_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return NodePools<P>::serves(bytes, alignment) ? pools_->allocate(bytes) : larger_->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    if (NodePools<P>::serves(bytes, alignment)) return pools_->deallocate(block, bytes);
    larger_->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  NodePools<P>* pools_;
  std::pmr::memory_resource* larger_;
};

}  // namespace freehold::pool

namespace freehold {
using pool::NodePools;
using pool::PoolAllocator;
using pool::PoolResource;
}  // namespace freehold
