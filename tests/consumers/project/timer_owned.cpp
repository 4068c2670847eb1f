// SPDX-License-Identifier: MIT
// A program with a timer that owns what it calls.
#include <chrono>
#include <cstdlib>

#include "freehold/timer.hpp"

int main() {
  using namespace std::chrono_literals;
  freehold::TimerWheel<> wheel;
  int fired = 0;
  freehold::timer::OwnedTimer timer(wheel, [&fired] { ++fired; });
  timer.every(10ms);
  const auto now = freehold::timer::Clock::now();
  wheel.advance(now + 15ms);
  wheel.advance(now + 1s);
  return fired >= 2 && timer.is_armed() ? EXIT_SUCCESS : EXIT_FAILURE;
}
