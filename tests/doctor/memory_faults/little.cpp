// SPDX-License-Identifier: MIT
// Reason: none. It holds next to nothing.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  const held::Block some = held::block(100'000);
  held::hold();
}
