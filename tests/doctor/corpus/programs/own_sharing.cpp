// SPDX-License-Identifier: MIT
// Threads write data of the program's own on one cache line: a lock-free stack of nodes that were allocated at the start
// (stack), or an array in one block from malloc (block). The block has one owner, so no malloc can put its elements apart.
#include <atomic>
#include <memory>

#include "tests/doctor/corpus/programs/common.h"

namespace {

std::atomic<long> counter{0};
std::atomic<std::uint64_t> top{0};  // {tag, index + 1}
std::uint32_t next_of[1024];
alignas(64) volatile long counters[8];
volatile long* in_block;
std::shared_ptr<long> shared = std::make_shared<long>(5);

void pop_and_push() {
  std::uint64_t seen = top.load();
  while (!top.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | next_of[(seen & 0xffffffff) - 1])) {
  }
  const std::uint64_t index = seen & 0xffffffff;
  seen = top.load();
  do next_of[index - 1] = static_cast<std::uint32_t>(seen);
  while (!top.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | index));
}

void work(const char* mode, int index, long rounds) {
  if (!std::strcmp(mode, "counter"))
    for (long i = 0; i < rounds; ++i) counter.fetch_add(1, std::memory_order_relaxed);
  else if (!std::strcmp(mode, "stack"))
    for (long i = 0; i < rounds; ++i) pop_and_push();
  else if (!std::strcmp(mode, "refcount"))
    for (long i = 0; i < rounds; ++i) {
      std::shared_ptr<long> copy = shared;
      asm volatile("" ::"r"(copy.get()) : "memory");
    }
  else {
    volatile long& mine = std::strcmp(mode, "block") ? counters[index] : in_block[index];
    for (long i = 0; i < rounds; ++i) mine = mine + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long rounds = std::atol(argv[3]) / threads;
  in_block = static_cast<volatile long*>(std::calloc(8, sizeof(long)));
  for (unsigned i = 0; i < 1024; ++i) next_of[i] = i;
  top = 1024;
  in_threads(threads, [&](int i) { work(argv[2], i, rounds); });
  std::printf("%ld %ld\n", counter.load(), static_cast<long>(counters[0]));
}
