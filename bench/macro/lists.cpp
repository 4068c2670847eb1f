// SPDX-License-Identifier: MIT
// Lists of chars: 24 lists of 500,000 nodes, each built and destroyed by one worker, shared by 1, 2 or 4 workers on
// CPUs of their own as far as there are enough.
#include <list>
#include <numeric>

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
  return {kLists * nodes, seconds, std::accumulate(sums.begin(), sums.end(), std::uint64_t{0})};
}

constexpr Row kRows[] = {
    {"lists_1t", "std::list<char>, 24 lists of 500k nodes, 1 thread", lists<1>},
    {"lists_2t", "the same lists by 2 threads", lists<2>},
    {"lists_4t", "the same lists by 4 threads", lists<4>},
};

}  // namespace

Rows list_rows() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace freehold::bench
