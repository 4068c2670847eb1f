// SPDX-License-Identifier: MIT
#include "lab/scale/workloads.hpp"

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <vector>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap_scope.hpp"

namespace freehold::lab::scale {
namespace {

// Marsaglia's xorshift64.
std::uint64_t next_random(std::uint64_t x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ (x << 17);
}

class Arithmetic {
 public:
  // Always the same number for the same rounds: the table starts over.
  std::uint64_t run(std::uint64_t rounds) {
    table_.fill(1);
    std::uint64_t x = 88172645463325252;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      x = next_random(x);
      table_[x % table_.size()] += x;
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t word : table_) sum = sum * 31 + word;
    return sum;
  }

 private:
  std::array<std::uint64_t, kComputeTable> table_;
};

void build(auto& list, std::uint64_t nodes) {
  for (std::uint64_t i = 0; i < nodes; ++i) list.push_back(static_cast<char>(i & 63));
}

std::uint64_t sum_of(const auto& list) {
  std::uint64_t sum = 0;
  for (const char c : list) sum += static_cast<unsigned char>(c);
  return sum;
}

constexpr std::uint64_t expected_sum(std::uint64_t nodes) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < nodes; ++i) sum += i & 63;
  return sum;
}

bool list_comes_out_right() {
  std::list<char> list;
  build(list, kListNodes);
  return sum_of(list) == expected_sum(kListNodes);
}

using NodeAllocator = heap::HeapAllocator<char, heap::OwnerLockedHeap>;
using HeapList = std::list<char, NodeAllocator>;

// The same in a heap; frees no node.
bool list_comes_out_right_in(heap::OwnerLockedHeap& heap) {
  auto& list = *::new (heap.allocate(sizeof(HeapList))) HeapList(NodeAllocator(heap));
  build(list, kListNodes);
  return sum_of(list) == expected_sum(kListNodes);
}

// The worker's share between start and finish: `unit` once per unit of work, which returns whether it came out right.
template <class Unit>
bool run_share(const Job& job, GroupWorker& worker, Unit unit) {
  const std::uint64_t units = share_of(job.iterations, job.workers, worker.index()) * job.units;
  bool correct = true;
  worker.start();
  for (std::uint64_t i = 0; i < units; ++i) correct &= unit();
  worker.finish();
  return correct;
}

}  // namespace

bool compute(const Job& job, GroupWorker& worker) {
  Arithmetic arithmetic;
  const std::uint64_t expected = arithmetic.run(kComputeRounds);
  return run_share(job, worker, [&] { return arithmetic.run(kComputeRounds) == expected; });
}

bool allocate(const Job& job, GroupWorker& worker) { return run_share(job, worker, list_comes_out_right); }

bool object(const Job& job, GroupWorker& worker) {
  return run_share(job, worker, [] {
    heap::OwnerLockedHeap heap;
    return list_comes_out_right_in(heap);
  });
}

bool scoped(const Job& job, GroupWorker& worker) {
  return run_share(job, worker, [] {
    PrivateHeap heap;
    const HeapScope scope(heap);
    auto& list = *new std::list<char>;
    build(list, kListNodes);
    const bool right = sum_of(list) == expected_sum(kListNodes);
    heap.release_all(heap::HeldBlocks::kEnd);
    return right;
  });
}

bool reserved(const Job& job, GroupWorker& worker) {
  heap::OwnerLockedHeap heap;
  const bool is_reserved = heap.reserve(kListNodes * 64);
  return run_share(job, worker, [&] {
    const bool right = list_comes_out_right_in(heap);
    heap.release_all();
    return right && is_reserved;
  });
}

bool worker_heap(const Job& job, GroupWorker& worker) {
  heap::OwnerLockedHeap heap;
  return run_share(job, worker, [&] {
    HeapList list{NodeAllocator(heap)};
    build(list, kListNodes);
    return sum_of(list) == expected_sum(kListNodes);
  });
}

bool locked(const Job& job, GroupWorker& worker) {
  return run_share(job, worker, [] {
    static std::mutex lock;
    const std::lock_guard guard(lock);
    return list_comes_out_right();
  });
}

bool mixed(const Job& job, GroupWorker& worker) {
  Arithmetic arithmetic;
  const std::uint64_t expected = arithmetic.run(kMixedRounds);
  return run_share(job, worker, [&] {
    std::list<char> list;
    build(list, kMixedNodes);
    return arithmetic.run(kMixedRounds) == expected && sum_of(list) == expected_sum(kMixedNodes);
  });
}

// Word i is i, whoever wrote it last.
bool memory(const Job& job, GroupWorker& worker, std::vector<std::uint64_t>& block) {
  const auto word = [&](std::size_t i) { return std::atomic_ref(block[i]); };
  for (std::size_t i = 0; i < block.size(); ++i) word(i).store(i, std::memory_order_relaxed);
  const std::size_t parts = block.size() / kMemoryWords;
  std::size_t part = parts * worker.index() / job.workers;
  return run_share(job, worker, [&] {
    bool correct = true;
    for (std::size_t i = part * kMemoryWords; i < (part + 1) * kMemoryWords; ++i) {
      const std::uint64_t value = word(i).load(std::memory_order_relaxed);
      correct &= value == i;
      word(i).store(value, std::memory_order_relaxed);
    }
    part = (part + 1) % parts;
    return correct;
  });
}

}  // namespace freehold::lab::scale
