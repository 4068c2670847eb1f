// SPDX-License-Identifier: MIT
// Reason: memory that the program maps itself.
#include <sys/mman.h>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr std::size_t kBytes = 40 * held::kMebibyte;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 1;
  std::memset(mapped, 1, kBytes);
  const held::Block some = held::block(2 * held::kMebibyte);
  held::hold();
}
