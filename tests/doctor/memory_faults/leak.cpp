// SPDX-License-Identifier: MIT
// Reason: a leak. Of each request a block is forgotten, from the beginning to the end, beside others that are freed.
#include "tests/doctor/memory_faults/held.hpp"

int main() {
  for (int request = 0; request < 400; ++request) {
    for (int i = 0; i < 200; ++i) static_cast<void>(held::block(600).release());
    const held::Block answer = held::block(9000);
    std::this_thread::sleep_for(std::chrono::microseconds(800));
  }
}
