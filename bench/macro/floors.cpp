// SPDX-License-Identifier: MIT
// Lower bounds for every malloc on this machine: the parts of our rows that remain when nothing is allocated. Prints one
// line for each: name, unit, least, median and most of the series.
//
// ring_bare: the ring of the ring rows with numbers instead of blocks. free_atomic, free_plain: bits of a bitmap set in
// random order, as slots freed at random are, with a locked instruction each and without. fault_4k, fault_huge: first touch
// of fresh memory; where a hypervisor takes free memory back from its guest, its most is many times its least.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "bench/macro/ring.hpp"
#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr unsigned kSeries = 9;

void print(const char* name, const char* unit, std::vector<double> series) {
  std::sort(series.begin(), series.end());
  std::printf("%s\t%s\t%.2f\t%.2f\t%.2f\n", name, unit, series.front(), series[series.size() / 2], series.back());
}

template <class Measure>
std::vector<double> repeat(Measure measure) {
  std::vector<double> series;
  for (unsigned i = 0; i < kSeries; ++i) series.push_back(measure());
  return series;
}

double ring_bare(std::size_t publish_every) {
  constexpr std::uint64_t kItems = 1'000'000;
  auto ring = std::make_unique<Ring>(publish_every);
  std::uint64_t sum = 0;
  const double seconds = run_threads(2, pin_to_cpu, [&](unsigned t) {
    if (t == 0) {
      for (std::uint64_t i = 0; i < kItems; ++i) ring->push(reinterpret_cast<void*>(i + 1));
      ring->publish();
    } else {
      for (std::uint64_t i = 0; i < kItems; ++i) sum += reinterpret_cast<std::uint64_t>(ring->pop());
    }
  });
  if (sum != kItems * (kItems + 1) / 2) give_up("an item was lost");
  return seconds * 1e9 / kItems;
}

// As many bits as random_free_1t has blocks, in random order.
template <bool kLocked>
double free_bits() {
  constexpr std::size_t kBits = 500'000;
  static Table<std::uint32_t> order(kBits);
  static Table<std::atomic<std::uint64_t>> words(kBits / 64 + 1);
  std::iota(order.begin(), order.end(), 0U);
  Random random(1);
  for (std::size_t i = kBits; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (auto& word : words) word.store(0, std::memory_order_relaxed);
  const auto start = Clock::now();
  for (const std::uint32_t bit : order) {
    auto& word = words[bit / 64];
    const std::uint64_t one = std::uint64_t{1} << (bit % 64);
    if constexpr (kLocked)
      word.fetch_add(one, std::memory_order_seq_cst);  // one thread, so only the instruction is measured
    else
      word.store(word.load(std::memory_order_relaxed) + one, std::memory_order_relaxed);
  }
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
  if (words[0].load(std::memory_order_relaxed) != ~std::uint64_t{0}) give_up("a bit is missing");
  return elapsed.count() / kBits;
}

// Microseconds for a MiB.
double fault(int advice) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  void* mapping = mmap(nullptr, kBytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) give_up("mmap failed");
  auto* const from = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(mapping) + kHuge - 1) & ~(kHuge - 1));
  madvise(from, kBytes, advice);  // refused: then both are measured alike
  const auto start = Clock::now();
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(from)[at] = 1;
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
  munmap(mapping, kBytes + kHuge);
  return elapsed.count() / (kBytes >> 20);
}

}  // namespace
}  // namespace freehold::bench

int main() {
  using namespace freehold::bench;
  if (std::thread::hardware_concurrency() >= 2) {
    print("ring_bare_1", "ns/item", repeat([] { return ring_bare(1); }));
    print("ring_bare_64", "ns/item", repeat([] { return ring_bare(64); }));
  }
  print("free_atomic", "ns/slot", repeat(free_bits<true>));
  print("free_plain", "ns/slot", repeat(free_bits<false>));
  print("fault_4k", "us/MiB", repeat([] { return fault(MADV_NOHUGEPAGE); }));
  print("fault_huge", "us/MiB", repeat([] { return fault(MADV_HUGEPAGE); }));
}
