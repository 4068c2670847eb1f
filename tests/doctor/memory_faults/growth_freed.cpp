// SPDX-License-Identifier: MIT
// Reason: live data. A table grows to the end of the run, and is freed then: growth that is no leak.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  std::vector<held::Block> table;
  for (int step = 0; step < 400; ++step) {
    for (int i = 0; i < 200; ++i) table.push_back(held::block(600));
    std::this_thread::sleep_for(std::chrono::microseconds(800));
  }
}
