// SPDX-License-Identifier: MIT
// A loop hands two trivial jobs to a pool each time, and waits for them.
// People found much time in the kernel for the mutex of the queue: the workers wake for jobs that are gone.
#include <condition_variable>
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
std::mutex g_mutex;
std::condition_variable g_changed;
long g_jobs = 0, g_running = 0;
bool g_over = false;

void work() {
  std::unique_lock lock(g_mutex);
  while (!g_over) {
    g_changed.wait(lock, [] { return g_over || g_jobs > 0; });
    if (g_jobs == 0) continue;
    --g_jobs;
    ++g_running;
    lock.unlock();
    unsigned seed = 1;
    for (int i = 0; i < 500; ++i) rebuilt::chance(seed);
    rebuilt::keep(seed);
    lock.lock();
    --g_running;
    g_changed.notify_all();
  }
}
}  // namespace

int main(int argc, char** argv) {
  std::jthread loop([&] {
    for (long i = 0, times = argc > 2 ? std::atol(argv[2]) : 1000; i < times; ++i) {
      std::unique_lock lock(g_mutex);
      g_jobs = 2;
      g_changed.notify_all();
      g_changed.wait(lock, [] { return g_jobs == 0 && g_running == 0; });
    }
    const std::lock_guard lock(g_mutex);
    g_over = true;
    g_changed.notify_all();
  });
  rebuilt::in_threads(argc, argv, [](unsigned, long) { work(); });
}
