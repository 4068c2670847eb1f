// SPDX-License-Identifier: MIT
// Does: threads keep caches of 16 KiB blocks, one cache each; a new block is filled, and the oldest freed.
// Why:  the description blames glibc's path for blocks above its thread cache, and proposes lists of free blocks. Nothing in
// it
//       was measured; each thread has an arena to itself. github.com/tjjh89017/ezio/issues/139, rebuilt from that description alone.
// Case block_cache: {n} 3000000
//   Truth: none
//   Right: none
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBlock = 16384, kBlocks = 16;

void serve(int blocks, const char* disk) {
  std::deque<void*> cache;
  for (int i = 0; i < blocks; ++i) {
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
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, blocks = argc > 2 ? std::atoi(argv[2]) : 3000000;
  const std::vector<char> disk(kBlock, 'x');
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(serve, blocks / threads, disk.data());
  for (auto& thread : running) thread.join();
}
