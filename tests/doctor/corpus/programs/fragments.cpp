// SPDX-License-Identifier: MIT
// Each thread fills a table with blocks of mixed sizes, frees three of four, and fills the holes with larger ones that do
// not fit. Memory is lost in holes, whichever malloc; time is not: each thread has an arena and shares nothing.
#include "tests/doctor/corpus/programs/common.h"

namespace {

long fragment(long rounds, unsigned seed) {
  long held = 0;
  std::vector<char*> blocks(12000);
  for (long round = 0; round < rounds; ++round) {
    for (int pass = 0; pass < 6; ++pass)
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 4 == 0 && pass > 0) continue;
        std::free(blocks[i]);
        seed = seed * 1664525u + 1013904223u;
        const std::size_t bytes = 32 + pass * 150 + (seed >> 25);
        blocks[i] = static_cast<char*>(std::malloc(bytes));
        std::memset(blocks[i], 1, bytes);
        ++held;
      }
    for (char*& block : blocks) {
      std::free(block);
      block = nullptr;
    }
  }
  return held;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = std::atoi(argv[1]);
  long held[64 * 16] = {};
  in_threads(threads, [&](int i) { held[i * 16] = fragment(std::atol(argv[2]) * 4 / threads, i + 1); });
  std::printf("%ld blocks\n", held[0]);
}
