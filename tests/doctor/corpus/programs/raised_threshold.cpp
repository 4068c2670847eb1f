// SPDX-License-Identifier: MIT
// Threads decode images into large buffers of many sizes, and free them; a few small blocks stay.
// People measured 400 MB resident beside 16 MB of data: glibc raises its threshold for mmap with each buffer
// that is freed, so that later ones come from the heap and stay there. It leaves open whether the arenas or the pages
// count.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<std::thread> threads;
  for (int me = 0; me < std::atoi(argv[1]); ++me)
    threads.emplace_back([seed = static_cast<unsigned>(me)]() mutable {
      std::vector<rebuilt::Block> cache;
      std::vector<rebuilt::Block> frames(8);
      for (int image = 0; image < 120; ++image) {
        frames[rebuilt::chance(seed) % 8] = rebuilt::block((256 + rebuilt::chance(seed) % 2048) << 10);
        cache.push_back(rebuilt::block(200));
      }
      frames.clear();
      rebuilt::idle(700);
    });
  for (std::thread& thread : threads) thread.join();
}
