// SPDX-License-Identifier: MIT
// Producer to consumer: one thread allocates, another frees, through a ring with one writer and one reader. Publishing
// every 64 items measures the allocator; publishing each item measures the ring's cache misses as well. Producers and
// consumers sit on different CPUs where there are two.
#include <memory>

#include "bench/macro/ring.hpp"
#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::size_t kBytes = 12;
constexpr std::uint64_t kItems = 2'000'000;

template <unsigned kPairs, std::size_t kPublishEvery>
Outcome producer_consumer(double scale) {
  const auto items = scaled(scale, kItems / kPairs / 64) * 64;
  std::vector<std::unique_ptr<Ring>> rings;
  for (unsigned i = 0; i < kPairs; ++i) rings.push_back(std::make_unique<Ring>(kPublishEvery));
  std::vector<std::uint64_t> sums(kPairs);
  const double seconds = run_threads(2 * kPairs, pin_to_cpu, [&](unsigned t) {
    Ring& ring = *rings[t / 2];
    if (t % 2 == 0) {
      for (std::uint64_t i = 0; i < items; ++i) {
        auto* block = static_cast<std::uint64_t*>(must(std::malloc(kBytes)));
        *block = i;
        ring.push(block);
      }
      ring.publish();
    } else {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < items; ++i) {
        auto* block = static_cast<std::uint64_t*>(ring.pop());
        sum += *block;
        std::free(block);
      }
      sums[t / 2] = sum;
    }
  });
  for (auto sum : sums)
    if (sum != items * (items - 1) / 2) give_up("an item was lost or changed");
  return {kPairs * items, seconds, sums[0]};
}

constexpr Row kRows[] = {
    {"ring_64", "a producer and a consumer, published every 64", producer_consumer<1, 64>},
    {"ring_64_4pairs", "four producers and four consumers in pairs, published every 64", producer_consumer<4, 64>},
    {"ring_1", "a producer and a consumer, each item published", producer_consumer<1, 1>},
};

}  // namespace

Rows ring_rows() { return kRows; }

}  // namespace freehold::bench
