// SPDX-License-Identifier: MIT
// Reason: free pages. A spike was freed long ago, except the last block, which keeps glibc from giving the heap back.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  held::Block last;
  {
    std::vector<held::Block> blocks;
    for (int i = 0; i < 60'000; ++i) blocks.push_back(held::block(700));
    last = held::block(700);
  }
  held::hold(600);
}
