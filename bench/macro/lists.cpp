// SPDX-License-Identifier: MIT
// Lists of chars: 24 lists of 500,000 nodes, each built and destroyed by one worker, shared by 1, 2 or 4 workers on
// CPUs of their own as far as there are enough. And a list of a million nodes that is built and dropped six times.
#include <list>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr unsigned kLists = 24;
constexpr std::uint64_t kNodes = 500'000;

template <unsigned kThreads>
Outcome lists(double scale) {
  const auto nodes = scaled(scale, kNodes);
  std::vector<std::uint64_t> sums(kThreads);
  const double seconds = run_threads(kThreads, pin_to_cpu, [&](unsigned t) {
    for (unsigned i = 0; i < kLists / kThreads; ++i) {
      std::list<char> chars;
      for (std::uint64_t n = 0; n < nodes; ++n) chars.push_back(static_cast<char>(n));
      sums[t] += chars.size() + static_cast<unsigned char>(chars.back());
    }
  });
  return {kLists * nodes, seconds, sum_of(sums)};
}

Outcome dropped(double scale) {
  constexpr unsigned kRounds = 6;
  struct Node {
    Node* next;
    std::uint64_t payload[3];
  };
  const auto nodes = scaled(scale, 1'000'000);
  std::uint64_t sum = 0;
  const auto start = Clock::now();
  for (unsigned round = 0; round < kRounds; ++round) {
    Node* first = nullptr;
    for (std::uint64_t n = 0; n < nodes; ++n) first = new (must(std::malloc(sizeof(Node)))) Node{first, {n, n, n}};
    while (first != nullptr) {
      sum += 1 + first->payload[0];
      std::free(std::exchange(first, first->next));
    }
  }
  return {kRounds * nodes, std::chrono::duration<double>(Clock::now() - start).count(), sum};
}

constexpr Row kRows[] = {
    {"dropped_1t", "a list of 1M nodes of 32 B, built and dropped 6 times, 1 thread", dropped},
    {"lists_1t", "std::list<char>, 24 lists of 500k nodes, 1 thread", lists<1>},
    {"lists_2t", "the same lists by 2 threads", lists<2>},
    {"lists_4t", "the same lists by 4 threads", lists<4>},
};

}  // namespace

Rows list_rows() { return kRows; }

}  // namespace freehold::bench
