// SPDX-License-Identifier: MIT
// Reason: a mapped file, all of whose pages were read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  constexpr std::size_t kBytes = 40 * held::kMebibyte;
  const char* const folder = std::getenv("TMPDIR");
  std::vector<char> name(4096);
  std::snprintf(name.data(), name.size(), "%s/freehold-held-XXXXXX", folder != nullptr ? folder : "/var/tmp");
  const int file = ::mkstemp(name.data());
  if (file < 0) return 1;
  ::unlink(name.data());
  if (::ftruncate(file, kBytes) != 0) return 1;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return 1;
  std::memset(mapped, 1, kBytes);
  held::hold();
}
