// SPDX-License-Identifier: MIT
// Reason: rounding. A million blocks of four bytes, for each of which glibc takes 32.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  std::vector<char*> blocks(1'000'000);
  for (char*& block : blocks) block = held::block(4).release();
  held::hold(500);
  for (char* const block : blocks) std::free(block);
}
