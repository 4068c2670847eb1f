// SPDX-License-Identifier: MIT
// Reason: caches of threads. Many threads free seven blocks of each small size, which is what glibc keeps for each of them.
#include <latch>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr int kThreads = 160;
  std::latch all_have_freed(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all_have_freed] {
      {
        std::vector<held::Block> blocks;
        blocks.reserve(7 * 64);
        for (std::size_t bytes = 24; bytes <= 1032; bytes += 16)
          for (int times = 0; times < 7; ++times) blocks.push_back(held::block(bytes));
      }
      all_have_freed.arrive_and_wait();
      held::hold(500);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
