// SPDX-License-Identifier: MIT
// Fault: the allocator puts small blocks of different threads on one cache line. Each thread keeps its own statistics, in
// objects that no other thread looks at, and yet their neighbours are the other threads' objects. Two CPUs take 2.5 to 3.1
// times as long as one; half as long where each block has a separate line. Allocators that give each thread its own pages
// mend the settings own and (some) scratch, none mends handed_out.
#include <malloc.h>

#include <array>
#include <atomic>
#include <barrier>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

using Counter = std::atomic<std::uint64_t>;
constexpr unsigned kKinds = 4;
using Statistics = std::array<std::unique_ptr<Counter>, kKinds>;

void count_up(const Statistics& statistics, std::size_t times, std::size_t work) {
  for (std::size_t i = 0; i < times; ++i) {
    statistics[i % kKinds]->fetch_add(1, std::memory_order_relaxed);
    fault::compute(work);
  }
}

// The thread that starts the others makes their statistics: of each kind, one for each thread.
std::vector<Statistics> for_all(const fault::Options& options) {
  std::vector<Statistics> all(options.threads);
  for (unsigned kind = 0; kind < kKinds; ++kind)
    for (Statistics& statistics : all) statistics[kind] = std::make_unique<Counter>();
  return all;
}

void handed_out(const fault::Options& options) {
  const std::vector<Statistics> all = for_all(options);
  fault::in_threads(options.threads, [&](unsigned me) { count_up(all[me], options.part(60e6), 4); });
}

// Each thread makes its own, from the one arena that the program allows, while the others make theirs.
void own(const fault::Options& options) {
  mallopt(M_ARENA_MAX, 1);
  std::barrier all(options.threads);
  fault::in_threads(options.threads, [&](unsigned) {
    Statistics mine;
    for (std::unique_ptr<Counter>& counter : mine) {
      all.arrive_and_wait();
      counter = std::make_unique<Counter>();
    }
    count_up(mine, options.part(60e6), 4);
  });
}

// A thread frees what it was handed, and what it allocates from then on lies there again (Hoard's "cache-scratch").
void scratch(const fault::Options& options) {
  std::vector<Statistics> all = for_all(options);
  fault::in_threads(options.threads, [&](unsigned me) {
    all[me] = {};
    const std::size_t rounds = options.part(100e3);
    for (std::size_t i = 0; i < rounds; ++i) {
      Statistics mine;
      for (std::unique_ptr<Counter>& counter : mine) counter = std::make_unique<Counter>();
      count_up(mine, 500, 4);
    }
  });
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words, {{"handed_out", handed_out}, {"own", own}, {"scratch", scratch}},
                    fault::machine_threads());
}
