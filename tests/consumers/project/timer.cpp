// SPDX-License-Identifier: MIT
// A program with timers, and its malloc as it was.
#include <chrono>
#include <cstdlib>

#include "freehold/timer.hpp"
#include "freehold/timer_queue.hpp"

int main() {
  freehold::TimerWheel<> wheel;
  freehold::TimerQueue<> queue;
  int fired = 0;
  const auto call = [&] { ++fired; };
  const auto now = freehold::timer::Clock::now();
  wheel.set(wheel.create(call), now);
  queue.set(queue.create(call), now);
  wheel.advance(now + std::chrono::seconds(1));
  queue.advance(now + std::chrono::seconds(1));
  return fired == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
