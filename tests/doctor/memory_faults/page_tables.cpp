// SPDX-License-Identifier: MIT
// Reason: page tables. A large sparse mapping of which one page in each 2 MiB is read: the kernel has one page of zeros for
// all of them, but a table for each.
#include <sys/mman.h>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr std::size_t kStep = 2 * held::kMebibyte, kPages = 8192;
  auto* const mapped = static_cast<volatile char*>(
      ::mmap(nullptr, kStep * kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (mapped == MAP_FAILED) return 1;
  ::madvise(const_cast<char*>(mapped), kStep * kPages, MADV_NOHUGEPAGE);
  long sum = 0;
  for (std::size_t i = 0; i < kPages; ++i) sum += mapped[i * kStep];
  held::hold(500);
  return static_cast<int>(sum);
}
