// SPDX-License-Identifier: MIT
// Reason: holes. One block of twelve lives on, spread over all pages: none of them can be given back.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  std::vector<held::Block> survivors;
  {
    std::vector<held::Block> blocks;
    for (int i = 0; i < 160'000; ++i) (i % 12 == 0 ? survivors : blocks).push_back(held::block(300));
  }
  held::hold(600);
}
