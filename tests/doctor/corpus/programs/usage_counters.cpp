// SPDX-License-Identifier: MIT
// Each thread counts the bytes it has allocated in its own counter; the counters of all threads share a cache
// line.
// People found by measuring on two kinds of CPU that padding the counters made a server up to 17% faster.
#include <atomic>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {

alignas(64) std::atomic<std::size_t> g_used[8];

void* allocate(std::size_t bytes, unsigned thread) {
  g_used[thread].store(g_used[thread].load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void release(void* block, std::size_t bytes, unsigned thread) {
  g_used[thread].store(g_used[thread].load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
  std::free(block);
}
}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long commands) {
    for (long i = 0; i < commands; ++i) {
      const std::size_t bytes = 16 + static_cast<std::size_t>(i & 63);
      void* const block = allocate(bytes, me % 8);
      *static_cast<volatile char*>(block) = 1;
      release(block, bytes, me % 8);
    }
  });
}
