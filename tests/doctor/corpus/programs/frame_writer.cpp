// SPDX-License-Identifier: MIT
// Threads compute frames; each frame is encoded and written in order, by the thread that holds the writer.
// People measured that writing a frame takes longer than computing it, and moved it off the threads that compute.
#include <condition_variable>
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
unsigned work(unsigned seed, int steps) {
  for (int i = 0; i < steps; ++i) rebuilt::chance(seed);
  return seed;
}
}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 2);
  std::mutex mutex;
  std::condition_variable written;
  long next = 0;
  rebuilt::in_threads(argc, argv, [&](unsigned me, long frames) {
    for (long i = 0; i < frames; ++i) {
      rebuilt::keep(work(me, 400'000));
      std::unique_lock lock(mutex);
      written.wait(lock, [&] { return next % threads == me; });
      rebuilt::keep(work(me, 1'200'000));
      ++next;
      written.notify_all();
    }
  });
}
