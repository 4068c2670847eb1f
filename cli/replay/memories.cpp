// SPDX-License-Identifier: MIT
#include "cli/replay/memories.hpp"

#include <cstdlib>

#include "freehold/alloc/engine.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "freehold/pool/best_pool.hpp"
#include "freehold/pool/single_thread.hpp"
#include "freehold/pool/tagged_stack.hpp"

namespace freehold::cli::replay {
namespace {

// Hands out the same few blocks again and again.
class Baseline final : public Memory {
 public:
  explicit Baseline(std::size_t bytes) : bytes_(bytes) {}
  void* acquire() noexcept override {
    alignas(64) static thread_local std::byte blocks[std::size_t{64} << 10];
    static thread_local std::size_t next = 0;
    next = next + 2 * bytes_ > sizeof blocks ? 0 : next + bytes_;
    return blocks + next;
  }
  void release(void*) noexcept override {}

 private:
  std::size_t bytes_;
};

// A malloc and its free.
template <auto kAllocate, auto kFree>
class MallocMemory final : public Memory {
 public:
  explicit MallocMemory(std::size_t bytes) : bytes_(bytes) {}
  void* acquire() noexcept override { return kAllocate(bytes_); }
  void release(void* block) noexcept override { kFree(block); }

 private:
  std::size_t bytes_;
};

template <class Pool>
class PoolMemory final : public Memory {
 public:
  explicit PoolMemory(const pool::PoolShape& shape) : pool_(shape) {}
  void* acquire() noexcept override { return pool_.acquire(); }
  void release(void* block) noexcept override { pool_.release(block); }

 private:
  Pool pool_;
};

template <class Heap>
class HeapMemory final : public Memory {
 public:
  explicit HeapMemory(std::size_t bytes) : bytes_(bytes) {}
  void* acquire() noexcept override { return heap_.allocate(bytes_); }
  void release(void* block) noexcept override { heap_.deallocate(block, bytes_); }

 private:
  Heap heap_;
  std::size_t bytes_;
};

template <class M>
std::unique_ptr<Memory> make_sized(std::size_t, std::size_t bytes) {
  return std::make_unique<M>(bytes);
}
template <class Pool>
std::unique_ptr<Memory> make_pool(std::size_t slots, std::size_t bytes) {
  pool::PoolShape shape;
  shape.slots = slots;
  shape.slot_bytes = bytes;
  return std::make_unique<PoolMemory<Pool>>(shape);
}

std::vector<Maker> make_makers() {
  std::vector<Maker> all{
      {"baseline", Kind::kBaseline, false, make_sized<Baseline>},
      {"malloc", Kind::kMalloc, false, make_sized<MallocMemory<std::malloc, std::free>>},
      {"libfreehold", Kind::kEngine, false, make_sized<MallocMemory<alloc::allocate, alloc::deallocate>>}};
  all.push_back({"best", Kind::kPool, false, make_pool<pool::NativePool<pool::Best>>});
  all.push_back({"tagged-stack", Kind::kPool, false, make_pool<pool::NativePool<pool::TaggedStack>>});
  all.push_back({"single-thread", Kind::kPool, true, make_pool<pool::SingleThreadPool>});
  all.push_back({"private-heap", Kind::kHeap, false, make_sized<HeapMemory<PrivateHeap>>});
  all.push_back({"owner-locked-heap", Kind::kHeap, true, make_sized<HeapMemory<OwnerLockedHeap>>});
  return all;
}

}  // namespace

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all = make_makers();
  return all;
}

}  // namespace freehold::cli::replay
