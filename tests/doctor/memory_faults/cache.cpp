// SPDX-License-Identifier: MIT
// Reason: live data. A cache is filled, has reached its limit then, and is never freed, not even at the end: growth that is
// no leak.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  auto& cache = *new std::vector<held::Block>;
  for (int i = 0; i < 60'000; ++i) cache.push_back(held::block(700));
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 200; ++i) cache[static_cast<std::size_t>(round * 200 + i)] = held::block(700);
    held::hold(3);
  }
}
