// SPDX-License-Identifier: MIT
// Requests with deadlines. Nearly all are answered in time, so nearly all timers are cancelled: the case that the wheel is
// made for. A driver calls those that are not, in its thread.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "freehold/timer.hpp"

using namespace std::chrono_literals;
using freehold::timer::TimerId;

namespace {

struct Request {
  std::atomic<bool> timed_out{false};
  TimerId deadline;
};

}  // namespace

int main() {
  freehold::timer::Driver<> timers;  // a wheel with ticks of a millisecond
  std::vector<Request> requests(1000);
  for (Request& request : requests) {
    request.deadline = timers.create([&request] { request.timed_out = true; });
    timers.set_after(request.deadline, &request - requests.data() < 900 ? 60s : 10ms);
  }

  int answered = 0;
  for (std::size_t i = 0; i < 900; ++i) answered += timers.cancel(requests[i].deadline);  // true: it will not fire
  std::this_thread::sleep_for(10ms);
  for (std::size_t i = 900; i < 1000; ++i)
    while (!requests[i].timed_out) std::this_thread::yield();

  for (const Request& request : requests) timers.destroy(request.deadline);
  timers.quiesce();  // no callback runs any more: the requests may go
  std::printf("%d answered, %d timed out\n", answered, static_cast<int>(requests.size()) - answered);
}
