// SPDX-License-Identifier: MIT
// Two faults at once: a heap with one lock (as in allocator_lock) and a mutex of the program's own. First the one, then the
// other, so that what is lost adds up. The amounts are such that each alone, in the amount of its full share, takes as much
// longer on two CPUs than half the time on one as the other. Machines do not agree on that: -p prints the seconds of both,
// and run.py asks first how they are here.
#include <malloc.h>

#include <barrier>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

#include "tests/doctor/faults/fault.hpp"

namespace {

void buffers(unsigned me, std::size_t rounds) {
  fault::Random random(me);
  std::unique_ptr<char[]> held[64];
  for (std::size_t i = 0; i < rounds; ++i) {
    std::unique_ptr<char[]>& place = held[random() % 64];
    place.reset(new char[1100 + random() % 2000]);
    place[0] = 'x';
  }
}

void locked_work(std::size_t rounds) {
  static std::mutex lock;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::lock_guard guard(lock);
    fault::compute(10'000);
  }
}

// `share`: of the loss that is the allocator's.
auto both(double share) {
  return [=](const fault::Options& options) {
    mallopt(M_ARENA_MAX, 1);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point began = Clock::now();
    Clock::time_point halfway;
    std::barrier between(options.threads, [&]() noexcept { halfway = Clock::now(); });
    fault::in_threads(options.threads, [&](unsigned me) {
      buffers(me, options.part(2.2e6 * share));
      between.arrive_and_wait();
      locked_work(options.part(20e3 * (1 - share)));
    });
    const std::chrono::duration<double> first = halfway - began, second = Clock::now() - halfway;
    if (options.tells_parts) std::printf("%.6f %.6f\n", first.count(), second.count());
  };
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words, {{"30", both(0.3)}, {"50", both(0.5)}, {"70", both(0.7)}});
}
