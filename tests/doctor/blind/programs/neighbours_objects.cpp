// SPDX-License-Identifier: MIT
// Does: a vector of unique_ptr to one statistics object for each thread; each thread counts bytes and lines of its input in
// it.
// Why:  the objects (40 bytes) are made one after the other, so malloc puts the end of one and the begin of the next
// on one line. The
//       reading itself touches a small buffer of the thread's own. Padding the class makes it scale.
// Case neighbours_statistics: {n} 500000000
//   Truth: allocator-false-sharing
//   Right: allocator-false-sharing
#include <atomic>
#include <memory>

#include "tests/doctor/blind/programs/common.h"

namespace {

struct Statistics {
  std::atomic<long> bytes{0}, lines{0}, words{0}, errors{0}, longest{0};
};

// Only its own thread writes a Statistics; relaxed, as join() publishes it to the reader.
void bump(std::atomic<long>& count) { count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

void read_input(Statistics& statistics, long bytes) {
  unsigned seed = 9;
  for (long i = 0; i < bytes; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bump(statistics.bytes);
    if (seed >> 29 == 0) bump(statistics.lines);
    if (seed >> 30 == 0) bump(statistics.longest);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = std::atoi(argv[1]);
  std::vector<std::unique_ptr<Statistics>> statistics;
  for (int i = 0; i < threads; ++i) statistics.push_back(std::make_unique<Statistics>());
  in_threads(threads, [&](int i) { read_input(*statistics[i], std::atol(argv[2]) / threads); });
  std::printf("%ld lines\n", statistics[0]->lines.load());
}
