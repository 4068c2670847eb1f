// SPDX-License-Identifier: MIT
// The program whose instructions callgrind counts: `fast_path N [BYTES]` allocates and frees N times through two functions
// in it, so that the cost of each call can be read from the profile whatever the allocator calls its functions.
#include <cstdlib>

#include "bench/macro/rows.hpp"

using freehold::bench::keep;

extern "C" {

// Not a tail call, hence keep().
[[gnu::noinline]] void* fast_path_allocate(std::size_t bytes) {
  void* block = std::malloc(bytes);
  keep(block);
  return block;
}

[[gnu::noinline]] void fast_path_free(void* block) {
  std::free(block);
  keep(nullptr);
}
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: fast_path N [BYTES]\n");
    return 2;
  }
  const long pairs = std::atol(argv[1]);
  const std::size_t bytes = argc == 3 ? static_cast<std::size_t>(std::atol(argv[2])) : 12;
  for (long i = 0; i < pairs; ++i) fast_path_free(fast_path_allocate(bytes));
}
