// SPDX-License-Identifier: MIT
// Reason: arenas. Each thread once needs much, never two at once, and keeps the last block: glibc keeps the rest in the
// arena of each thread, where the others cannot use it.
#include <mutex>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr std::size_t kThreads = 8;
  std::mutex one_at_a_time;
  std::vector<held::Block> kept(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      {
        const std::lock_guard guard(one_at_a_time);
        std::vector<held::Block> blocks;
        for (int i = 0; i < 16'000; ++i) blocks.push_back(held::block(500));
        kept[me] = std::move(blocks.back());
      }
      held::hold(400);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
