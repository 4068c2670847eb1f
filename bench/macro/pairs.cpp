// SPDX-License-Identifier: MIT
// Small blocks of one size: freed at once (short), after all were allocated (long), or in random order. "polluted" means
// that every thread first allocates as many blocks and frees every second one, so that the heap is half used.
#include <algorithm>
#include <numeric>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::size_t kBytes = 12;
constexpr std::uint64_t kBlocks = 1'000'000;

void* allocate_stamped(std::uint64_t stamp) {
  auto* block = static_cast<std::uint64_t*>(must(std::malloc(kBytes)));
  *block = stamp;
  return block;
}

// Survivors are returned in the table, so that the heap stays half used while the clock runs.
void pollute(Table<void*>& survivors) {
  for (auto& block : survivors) block = allocate_stamped(1);
  for (std::size_t i = 0; i < survivors.size(); i += 2) std::free(std::exchange(survivors[i], nullptr));
}

template <class T>
std::vector<Table<T>> tables(unsigned count, std::size_t size) {
  std::vector<Table<T>> result;
  for (unsigned i = 0; i < count; ++i) result.emplace_back(size);
  return result;
}

enum class Heap { kFresh, kPolluted };

Outcome allocate_and_free(unsigned threads, std::uint64_t pairs, std::uint64_t polluting) {
  auto survivors = tables<void*>(threads, std::max<std::uint64_t>(polluting, 1));
  const double seconds = run_threads(
      threads,
      [&](unsigned t) {
        if (polluting != 0) pollute(survivors[t]);
      },
      [&](unsigned) {
        for (std::uint64_t i = 0; i < pairs; ++i) {
          void* block = std::malloc(kBytes);
          keep(block);
          std::free(block);
        }
      });
  return {threads * pairs, seconds, 1};
}

template <unsigned kThreads, Heap kHeap>
Outcome short_row(double scale) {
  const auto pairs = scaled(scale, kBlocks);
  return allocate_and_free(kThreads, pairs, kHeap == Heap::kPolluted ? pairs : 0);
}

Outcome lifo_pair(double scale) { return allocate_and_free(1, scaled(scale, 30'000'000), 0); }

template <unsigned kThreads, Heap kHeap>
Outcome long_row(double scale) {
  const auto blocks = scaled(scale, kBlocks);
  auto held = tables<void*>(kThreads, blocks);
  auto survivors = tables<void*>(kThreads, kHeap == Heap::kPolluted ? blocks : 1);
  std::vector<std::uint64_t> sums(kThreads);
  const double seconds = run_threads(
      kThreads,
      [&](unsigned t) {
        if (kHeap == Heap::kPolluted) pollute(survivors[t]);
      },
      [&](unsigned t) {
        auto& mine = held[t];
        std::uint64_t stamp = 0;
        for (auto& block : mine) block = allocate_stamped(++stamp);
        sums[t] = *static_cast<std::uint64_t*>(mine[blocks / 2]) + *static_cast<std::uint64_t*>(mine[blocks - 1]);
        for (auto& block : mine) std::free(block);
      });
  for (auto sum : sums)
    if (sum != blocks / 2 + 1 + blocks) give_up("a block was overwritten");
  return {kThreads * blocks, seconds, sum_of(sums)};
}

template <unsigned kThreads>
Outcome random_free(double scale) {
  const auto blocks = scaled(scale, kBlocks / 2);
  auto held = tables<void*>(kThreads, blocks);
  auto orders = tables<std::uint32_t>(kThreads, blocks);
  std::vector<std::uint64_t> sums(kThreads);
  const double seconds = run_threads(
      kThreads,
      [&](unsigned t) {
        std::iota(orders[t].begin(), orders[t].end(), 0u);
        Random random(t + 1);
        for (std::size_t i = blocks - 1; i > 0; --i) std::swap(orders[t][i], orders[t][random.below(i + 1)]);
      },
      [&](unsigned t) {
        for (std::size_t i = 0; i < blocks; ++i) held[t][i] = allocate_stamped(i + 1);
        sums[t] = *static_cast<std::uint64_t*>(held[t][blocks - 1]);
        for (auto index : orders[t]) std::free(held[t][index]);
      });
  for (auto sum : sums)
    if (sum != blocks) give_up("a block was overwritten");
  return {kThreads * blocks, seconds, sums[0]};
}

constexpr Row kRows[] = {
    {"pair", "1 thread, malloc(12) and free at once, 30M times", lifo_pair},
    {"short_fresh_1t", "1 thread, malloc(12) and free at once, 1M times", short_row<1, Heap::kFresh>},
    {"short_fresh_8t", "8 threads, the same", short_row<8, Heap::kFresh>},
    {"short_polluted_1t", "1 thread, the same in a half-used heap", short_row<1, Heap::kPolluted>},
    {"short_polluted_8t", "8 threads, the same in a half-used heap", short_row<8, Heap::kPolluted>},
    {"long_fresh_1t", "1 thread, 1M malloc(12), then 1M free", long_row<1, Heap::kFresh>},
    {"long_fresh_8t", "8 threads, the same", long_row<8, Heap::kFresh>},
    {"long_polluted_1t", "1 thread, the same in a half-used heap", long_row<1, Heap::kPolluted>},
    {"long_polluted_8t", "8 threads, the same in a half-used heap", long_row<8, Heap::kPolluted>},
    {"random_free_1t", "1 thread, 500k malloc(12), freed in random order", random_free<1>},
    {"random_free_8t", "8 threads, the same", random_free<8>},
};

}  // namespace

Rows pair_rows() { return kRows; }

}  // namespace freehold::bench
