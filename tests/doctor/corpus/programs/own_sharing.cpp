// SPDX-License-Identifier: MIT
// Threads write data of the program's own on one cache line: a lock-free stack of nodes that were allocated at the start
// (stack), or an array in one block from malloc (block). The block has one owner, so no malloc can put its elements apart.
#include <atomic>

#include "tests/doctor/corpus/programs/common.h"

namespace {

std::atomic<std::uint64_t> top{0};  // {tag, index + 1}
std::uint32_t next_of[1024];
volatile long* in_block;

void pop_and_push() {
  std::uint64_t seen = top.load();
  while (!top.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | next_of[(seen & 0xffffffff) - 1])) {
  }
  const std::uint64_t index = seen & 0xffffffff;
  seen = top.load();
  do next_of[index - 1] = static_cast<std::uint32_t>(seen);
  while (!top.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | index));
}

void count(int index, long rounds) {
  volatile long& mine = in_block[index];
  for (long i = 0; i < rounds; ++i) mine = mine + 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const long rounds = std::atol(argv[3]) / threads;
  in_block = static_cast<volatile long*>(std::calloc(8, sizeof(long)));
  for (unsigned i = 0; i < 1024; ++i) next_of[i] = i;
  top = 1024;
  const bool pops = !std::strcmp(argv[2], "stack");
  in_threads(threads, [&](int i) {
    if (!pops) return count(i, rounds);
    for (long k = 0; k < rounds; ++k) pop_and_push();
  });
  std::printf("%s %ld\n", argv[2], static_cast<long>(in_block[0]));
}
