// SPDX-License-Identifier: MIT
// The timers of one structure: an array of nodes in its own memory, addressed by the index that a TimerId carries.
// Address space for all is reserved at once and made usable as timers are created, so that a node never moves and an index
// becomes an address without a look-up; from 2 MiB on the system may use huge pages.
//
//   Invariant: node i < used() is handed out or on the free list, never both. A node is constructed when it is first handed
//   out, handed out again as it was left, and never destroyed: its destructor must have nothing to do.
//
// A Node has get_next() and set_next(std::uint32_t), which the free list uses while the node is not handed out.
// Threads: as the policy says; allocate() and free() under a lock of a few instructions, and a system call when the array
// grows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "freehold/base/bits.hpp"
#include "freehold/base/check.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/sync/lock.hpp"
#include "freehold/timer/locking.hpp"

namespace freehold::timer {

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
// A gibibyte of address space at 64 bytes a timer.
inline constexpr std::size_t kDefaultTimers = std::size_t{1} << 24;

template <class Node, class Locking>
class NodeArray {
 public:
  // Errors: std::bad_alloc when there is no address space for `capacity` nodes.
  explicit NodeArray(std::size_t capacity)
      : capacity_(static_cast<std::uint32_t>(capacity < kNoNode ? capacity : kNoNode)),
        memory_(pool::Memory::reserved(std::size_t{capacity_} * sizeof(Node), alignof(Node))),
        nodes_(static_cast<Node*>(memory_.start())) {}

  [[nodiscard]] Node& operator[](std::uint32_t index) const noexcept { return nodes_[index]; }
  [[nodiscard]] std::uint32_t index_of(const Node& node) const noexcept {
    return static_cast<std::uint32_t>(&node - nodes_);
  }
  // Nodes that were handed out once; an index below is safe to look at.
  // acquire: pairs with the release in allocate(), which constructs the node first.
  [[nodiscard]] std::uint32_t used() const noexcept { return used_.load(std::memory_order_acquire); }

  // kNoNode: no memory, or as many as there may be.
  [[nodiscard]] std::uint32_t allocate() noexcept {
    const sync::Guard<Mutex> guard(lock_);
    if (free_ != kNoNode) {
      const std::uint32_t index = free_;
      free_ = nodes_[index].get_next();
      ++allocated_;
      return index;
    }
    const std::uint32_t index = used_.load(std::memory_order_relaxed);  // relaxed: changed under the lock only
    if (index == usable_ && !grow()) return kNoNode;
    ::new (static_cast<void*>(&nodes_[index])) Node;
    used_.store(index + 1, std::memory_order_release);
    ++allocated_;
    return index;
  }

  void free(std::uint32_t index) noexcept {
    const sync::Guard<Mutex> guard(lock_);
    nodes_[index].set_next(free_);
    free_ = index;
    --allocated_;
  }
  // Nodes that are handed out now.
  [[nodiscard]] std::uint32_t allocated() const noexcept {
    const sync::Guard<Mutex> guard(lock_);
    return allocated_;
  }

 private:
  using Mutex = typename Locking::Mutex;
  static constexpr std::size_t kFirstBytes = 64 * 1024, kMostBytes = std::size_t{32} << 20;

  // Doubles at first, so that few mappings are made; physical memory comes only as it is touched.
  [[gnu::noinline]] bool grow() noexcept {
    if (usable_ == capacity_) return false;
    const std::size_t now = std::size_t{usable_} * sizeof(Node);
    const std::size_t step = now < kFirstBytes ? kFirstBytes : now < kMostBytes ? now : kMostBytes;
    std::size_t end = base::align_up(now + step, kFirstBytes);
    if (end > memory_.bytes()) end = memory_.bytes();
    if (!memory_.commit(now, end)) return false;
    usable_ = end / sizeof(Node) < capacity_ ? static_cast<std::uint32_t>(end / sizeof(Node)) : capacity_;
    return true;
  }

  // Written by the constructor only.
  std::uint32_t capacity_;
  pool::Memory memory_;
  Node* nodes_;
  // Read by all, written under the lock.
  typename Locking::template atomic<std::uint32_t> used_{0};
  // Under the lock.
  [[no_unique_address]] mutable Mutex lock_;
  std::uint32_t usable_ = 0;
  std::uint32_t allocated_ = 0;
  std::uint32_t free_ = kNoNode;
};

}  // namespace freehold::timer
