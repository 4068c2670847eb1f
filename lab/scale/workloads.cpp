// SPDX-License-Identifier: MIT
#include "lab/scale/workloads.hpp"

#include <array>
#include <list>
#include <mutex>
#include <new>
#include <vector>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/owner_locked_heap.hpp"

namespace freehold::cli::scale {
namespace {

// Marsaglia's xorshift64.
std::uint64_t next_random(std::uint64_t x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ (x << 17);
}

class Arithmetic {
 public:
  // Always the same number for the same rounds: the table starts anew.
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

// The same in a heap that ends with the list, which frees no node.
bool list_in_a_heap_comes_out_right() {
  using Allocator = heap::HeapAllocator<char, heap::OwnerLockedHeap>;
  using List = std::list<char, Allocator>;
  heap::OwnerLockedHeap heap;
  auto& list = *::new (heap.allocate(sizeof(List))) List(Allocator(heap));
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

bool object(const Job& job, GroupWorker& worker) { return run_share(job, worker, list_in_a_heap_comes_out_right); }

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

bool memory(const Job& job, GroupWorker& worker) {
  std::vector<std::uint64_t> buffer(kMemoryBuffer, worker.index());
  std::size_t position = 0;
  std::uint64_t units = 0;
  const bool done = run_share(job, worker, [&] {
    for (std::uint64_t i = 0; i < kMemoryWords; ++i) buffer[position + i] += 1;
    position = (position + kMemoryWords) % buffer.size();
    ++units;
    return true;
  });
  std::uint64_t sum = 0;
  for (const std::uint64_t word : buffer) sum += word;
  return done && sum == kMemoryBuffer * worker.index() + units * kMemoryWords;
}

}  // namespace freehold::cli::scale
