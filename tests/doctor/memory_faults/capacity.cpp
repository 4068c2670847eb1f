// SPDX-License-Identifier: MIT
// Reason: one block. A vector was large once; a few elements are left of it, and all of its capacity.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  std::vector<long> values(6 * held::kMebibyte, 1);
  values.resize(100);
  held::hold();
  asm volatile("" : : "g"(values.data()) : "memory");
}
