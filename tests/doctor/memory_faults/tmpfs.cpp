// SPDX-License-Identifier: MIT
// Reason: a file in tmpfs, which is memory though no mapping shows it.
#include <unistd.h>

#include "tests/doctor/memory_faults/held.hpp"

int main() {
  char name[] = "/dev/shm/freehold-held-XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0) return 1;
  ::unlink(name);
  const held::Block buffer = held::block(held::kMebibyte);
  for (int i = 0; i < 40; ++i)
    if (::write(file, buffer.get(), held::kMebibyte) != static_cast<ssize_t>(held::kMebibyte)) return 1;
  held::hold();
}
