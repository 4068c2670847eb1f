// SPDX-License-Identifier: MIT
// Does: threads build and drop lists of terms, whose blocks are too large for glibc's thread caches, with
// MALLOC_ARENA_MAX=1. Why:  a job script capped the arenas to save memory; people found by timing with and without the cap
// that all its threads
//       waited for one arena. github.com/Algorithmiq/monoprop/pull/287, rebuilt from that description alone.
// Case capped_arenas: {n} 4000000
//   Truth: allocator-lock
//   Right: allocator-lock
//   Env: MALLOC_ARENA_MAX=1
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

void propagate(int rounds, unsigned seed) {
  std::vector<std::unique_ptr<unsigned[]>> terms(32);
  for (int round = 0; round < rounds; ++round) {
    seed = seed * 1664525 + 1013904223;
    const std::size_t length = 300 + (seed >> 16) % 200;
    auto& one = terms[seed >> 27];
    one = std::make_unique_for_overwrite<unsigned[]>(length);
    for (std::size_t at = 0; at < length; at += 16) one[at] = seed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 4000000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(propagate, rounds / threads, static_cast<unsigned>(i));
  for (auto& thread : running) thread.join();
}
