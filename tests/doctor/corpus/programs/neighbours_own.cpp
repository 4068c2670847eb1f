// SPDX-License-Identifier: MIT
// Each thread keeps its own counters in small blocks, which no other thread looks at, and yet their neighbours on the
// line are other threads'.
//   own      the threads allocate at the same time, from the one arena that the program allows
//   scratch  a thread frees what it was handed, and what it allocates from then on lies there again (Hoard's "cache-scratch")
// Half the time is lost; allocators that give each thread its own pages mend own, and some scratch.
#include <malloc.h>

#include <array>
#include <atomic>
#include <barrier>
#include <memory>

#include "tests/doctor/corpus/programs/common.h"

namespace {

using Counter = std::atomic<std::uint64_t>;
using Statistics = std::array<std::unique_ptr<Counter>, 4>;

std::uint64_t count_up(const Statistics& statistics, long times) {
  std::uint64_t value = 5;
  for (long i = 0; i < times; ++i) {
    statistics[i % 4]->fetch_add(value & 1, std::memory_order_relaxed);
    value = mix(value, 4);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const bool scratches = !std::strcmp(argv[2], "scratch");
  const long times = std::atol(argv[3]) / threads;
  if (!scratches) mallopt(M_ARENA_MAX, 1);
  std::vector<Statistics> all(threads);
  if (scratches)
    for (int kind = 0; kind < 4; ++kind)
      for (Statistics& statistics : all) statistics[kind] = std::make_unique<Counter>();
  std::barrier<> together(threads);
  in_threads(threads, [&](int me) {
    all[me] = {};
    for (long done = 0; done < times; done += scratches ? 500 : times) {
      Statistics mine;
      for (auto& counter : mine) {
        if (!scratches) together.arrive_and_wait();
        counter = std::make_unique<Counter>();
      }
      count_up(mine, scratches ? 500 : times);
    }
  });
  std::printf("%s %ld\n", argv[2], times);
}
