// SPDX-License-Identifier: MIT
// A program of which it is known what malloc costs it: the same arithmetic with and without calls of malloc and free.
//
//   known_share STEPS PAIRS [BYTES]     so many steps of arithmetic, each with so many pairs of calls, for BYTES (32) to 63 more
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 1'000'000;
  const int pairs = argc > 2 ? std::atoi(argv[2]) : 0;
  const std::size_t bytes = argc > 3 ? static_cast<std::size_t>(std::atol(argv[3])) : 32;
  std::uint64_t mixed = 1;
  for (long step = 0; step < steps; ++step) {
    for (int i = 0; i < 64; ++i) mixed = (mixed ^ (mixed >> 29)) * 0x9E3779B97F4A7C15U;  // each waits for the one before
    for (int i = 0; i < pairs; ++i) {
      void* volatile block = std::malloc(bytes + (mixed & 63));
      std::free(block);
    }
  }
  std::printf("%llu\n", static_cast<unsigned long long>(mixed));
  return 0;
}
