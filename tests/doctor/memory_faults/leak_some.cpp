// SPDX-License-Identifier: MIT
// Reason: a leak. One function makes all responses; each tenth of them is forgotten, the others are freed when a few more
// have come.
#include <deque>

#include "tests/doctor/memory_faults/held.hpp"

namespace {
[[gnu::noinline]] held::Block response() { return held::block(2500); }
}  // namespace

int main() {
  std::deque<held::Block> sent;
  for (int request = 0; request < 80'000; ++request) {
    sent.push_back(response());
    if (request % 10 == 0) static_cast<void>(sent.back().release());
    if (sent.size() > 50) sent.pop_front();
    if (request % 200 == 0) std::this_thread::sleep_for(std::chrono::microseconds(800));
  }
}
