// SPDX-License-Identifier: MIT
// Reason: shared memory, mapped, as between processes.
#include <sys/mman.h>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr std::size_t kBytes = 40 * held::kMebibyte;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 1;
  std::memset(mapped, 1, kBytes);
  held::hold();
}
