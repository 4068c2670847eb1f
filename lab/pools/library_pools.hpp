// SPDX-License-Identifier: MIT
// Pools of other libraries behind the interface of ours, and the baseline.
#pragma once
#include <atomic>
#include <boost/pool/pool.hpp>
#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <new>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"

namespace freehold::lab::pools {

// boost::pool is not for several threads; its documentation asks for a lock around it.
template <class Mutex>
class LockedBoostPool {
 public:
  explicit LockedBoostPool(const pool::PoolShape& shape) : capacity_(shape.slots), pool_(shape.slot_bytes) {}

  [[nodiscard]] void* acquire() noexcept {
    const std::lock_guard guard(mutex_);
    return pool_.malloc();
  }
  void release(void* slot) noexcept {
    const std::lock_guard guard(mutex_);
    pool_.free(slot);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::size_t capacity_;
  [[no_unique_address]] Mutex mutex_;
  boost::pool<> pool_;
};
// For one thread, as it is.
struct NoMutex {
  static void lock() noexcept {}
  static void unlock() noexcept {}
};
using BoostPool = LockedBoostPool<std::mutex>;
using UnlockedBoostPool = LockedBoostPool<NoMutex>;
static_assert(pool::SlotPool<BoostPool> && pool::SlotPool<UnlockedBoostPool>);

template <class Resource>
class PoolResource {
 public:
  explicit PoolResource(const pool::PoolShape& shape) : shape_(shape) {}

  [[nodiscard]] void* acquire() noexcept { return resource_.allocate(shape_.slot_bytes, shape_.alignment); }
  void release(void* slot) noexcept { resource_.deallocate(slot, shape_.slot_bytes, shape_.alignment); }
  [[nodiscard]] std::size_t capacity() const noexcept { return shape_.slots; }

 private:
  pool::PoolShape shape_;
  Resource resource_;
};
using SynchronizedPoolResource = PoolResource<std::pmr::synchronized_pool_resource>;
using UnsynchronizedPoolResource = PoolResource<std::pmr::unsynchronized_pool_resource>;
static_assert(pool::SlotPool<SynchronizedPoolResource> && pool::SlotPool<UnsynchronizedPoolResource>);

// A list of free slots for each thread, and nothing else: no capacity, no way back from another thread. The slots that a
// thread releases are the only ones it has; the first ones are cut from a piece of memory that it allocates.
class ThreadFreeList {
 public:
  static constexpr bool kThreadsShare = false;

  explicit ThreadFreeList(const pool::PoolShape& shape)
      : slot_bytes_(base::align_up(shape.slot_bytes, shape.alignment)),
        memory_(shape.slots * slot_bytes_, shape.alignment) {}

  [[nodiscard]] void* acquire() noexcept {
    Node* const top = top_;
    if (top == nullptr) [[unlikely]]
      return cut();
    top_ = top->below;
    return top;
  }
  void release(void* slot) noexcept {
    Node* const node = ::new (slot) Node{top_};
    top_ = node;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return memory_.bytes() / slot_bytes_; }

 private:
  struct Node {
    Node* below;
  };
  static constexpr std::size_t kCutAtOnce = 64;

  [[gnu::noinline]] void* cut() noexcept;

  static inline thread_local constinit Node* top_ = nullptr;
  std::size_t slot_bytes_;
  pool::Memory memory_;
  std::atomic<std::size_t> used_{0};
};
static_assert(pool::SlotPool<ThreadFreeList>);

}  // namespace freehold::lab::pools
