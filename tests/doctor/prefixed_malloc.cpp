// SPDX-License-Identifier: MIT
// A program with functions of mimalloc's names beside malloc: 1000 calls after its input says so.
#include <unistd.h>

#include <cstdlib>

extern "C" [[gnu::noinline]] void* mi_malloc(unsigned long bytes) {
  asm volatile("");
  return std::malloc(bytes);
}

int main() {
  char go = 0;
  if (::read(STDIN_FILENO, &go, 1) != 1) return 1;
  for (int i = 0; i < 1000; ++i) std::free(mi_malloc(16));
  return 0;
}
