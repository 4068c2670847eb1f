// SPDX-License-Identifier: MIT
// Allocates for a while in two threads, by whatever malloc is linked into it.
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

int main() {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until whoever counts its calls has found it
  const auto allocate = [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 20'000; ++i) {
      blocks.push_back(std::malloc(16 + i % 200));
      if (blocks.size() < 100) continue;
      for (void* const block : blocks) std::free(block);
      blocks.clear();
    }
    for (void* const block : blocks) std::free(block);
  };
  std::thread other(allocate);
  allocate();
  other.join();
}
