// SPDX-License-Identifier: MIT
// One thread puts trivial tasks into a queue behind a mutex, from which all workers take them.
// People measured that sixteen pools of one worker do four times as much as one pool of sixteen workers.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
std::mutex g_mutex;
std::condition_variable g_some;
std::deque<void (*)()> g_tasks;
bool g_over = false;

void work() {
  for (;;) {
    std::unique_lock lock(g_mutex);
    g_some.wait(lock, [] { return g_over || !g_tasks.empty(); });
    if (g_tasks.empty()) return;
    const auto task = g_tasks.front();
    g_tasks.pop_front();
    lock.unlock();
    task();
  }
}
}  // namespace

int main(int argc, char** argv) {
  std::jthread producer([&] {
    for (long i = 0, tasks = argc > 2 ? std::atol(argv[2]) : 1000; i < tasks; ++i) {
      const std::lock_guard lock(g_mutex);
      g_tasks.push_back([] {});
      g_some.notify_one();
    }
    const std::lock_guard lock(g_mutex);
    g_over = true;
    g_some.notify_all();
  });
  rebuilt::in_threads(argc, argv, [](unsigned, long) { work(); });
}
