// SPDX-License-Identifier: MIT
// Threads keep caches of 16 KiB blocks, one cache each; a new block is filled, and the oldest freed.
// The description blames glibc's path for blocks above its thread cache, and proposes lists of free blocks.
// Nothing in it was measured; each thread has an arena to itself.
#include <deque>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {

constexpr std::size_t kBlock = 16384, kBlocks = 16;

void serve(long blocks, const char* disk) {
  std::deque<void*> cache;
  for (long i = 0; i < blocks; ++i) {
    void* const block = std::malloc(kBlock);
    std::memcpy(block, disk, kBlock);
    cache.push_back(block);
    if (cache.size() <= kBlocks) continue;
    std::free(cache.front());
    cache.pop_front();
  }
  for (void* const block : cache) std::free(block);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char> disk(kBlock, 'x');
  rebuilt::in_threads(argc, argv, [&](unsigned, long blocks) { serve(blocks, disk.data()); });
}
