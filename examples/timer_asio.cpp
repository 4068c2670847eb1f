// SPDX-License-Identifier: MIT
// A wheel in an event loop that has a timer already: one asio timer, set to the wheel's next expiry, serves a hundred
// thousand of the wheel's. The loop is one thread, so the wheel needs no locks.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "freehold/timer_asio.hpp"

int main() {
  boost::asio::io_context loop;
  freehold::timer::AsioTimers<> timers(loop);
  int fired = 0;
  auto count = [&] { ++fired; };
  std::vector<freehold::timer::TimerId> ids;
  const auto start = freehold::timer::Clock::now();
  for (int i = 0; i < 100'000; ++i) {
    ids.push_back(timers.create(std::ref(count)));
    timers.set(ids.back(), start + std::chrono::milliseconds(i % 100 == 0 ? i / 5'000 : 60'000));
  }
  for (int i = 0; i < 100'000; ++i)
    if (i % 100 != 0) timers.cancel(ids[static_cast<std::size_t>(i)]);
  loop.run();  // returns when no timer is armed any more
  std::printf("%d of 100000 fired\n", fired);
}
