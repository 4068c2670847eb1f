// Large blocks: each thread replaces random members of a small set, 32 KiB to 4 MiB, and touches a byte of the first and
// last page of each.
#include <numeric>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

constexpr std::size_t kHeld = 16;

struct Held {
  char* memory = nullptr;
  std::size_t bytes = 0;
};

template <unsigned kThreads>
Outcome large(double scale) {
  const auto replacements = scaled(scale, 40'000 / kThreads);
  std::vector<std::uint64_t> sums(kThreads);
  const double seconds = run_threads(
      kThreads, [](unsigned) {},
      [&](unsigned t) {
        Random random(t + 1);
        Held held[kHeld];
        auto drop = [&](Held& block) {
          if (block.memory == nullptr) return;
          if (block.memory[0] != 1 || block.memory[block.bytes - 1] != 2) give_up("a block was overwritten");
          std::free(block.memory);
          ++sums[t];
        };
        for (std::uint64_t i = 0; i < replacements; ++i) {
          Held& block = held[random.below(kHeld)];
          drop(block);
          block.bytes = random.log_size(15, 22);
          block.memory = static_cast<char*>(must(std::malloc(block.bytes)));
          block.memory[0] = 1;
          block.memory[block.bytes - 1] = 2;
        }
        for (auto& block : held) drop(block);
      });
  const auto total = std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  if (total != kThreads * replacements) give_up("a block was lost");
  return {total, seconds, total};
}

constexpr Row kRows[] = {
    {"large_1t", "1 thread, random 32 KiB-4 MiB, 16 held", large<1>},
    {"large_4t", "4 threads, the same", large<4>},
};

}  // namespace

Rows large_rows() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace freehold::bench
