// SPDX-License-Identifier: MIT
// Threads match short texts with one expression, whose scratch memory comes from a pool behind a mutex.
// People saw by profiles that the mutex of the pool takes most of the time where threads share one expression.
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
using Scratch = std::vector<unsigned>;
std::mutex g_mutex;
std::vector<std::unique_ptr<Scratch>> g_pool;

std::unique_ptr<Scratch> take() {
  const std::lock_guard lock(g_mutex);
  if (g_pool.empty()) return std::make_unique<Scratch>(256);
  auto scratch = std::move(g_pool.back());
  g_pool.pop_back();
  return scratch;
}
void give_back(std::unique_ptr<Scratch> scratch) {
  const std::lock_guard lock(g_mutex);
  g_pool.push_back(std::move(scratch));
}
}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long texts) {
    for (long i = 0; i < texts; ++i) {
      auto scratch = take();
      for (unsigned at = 0; at < 40; ++at) (*scratch)[(at * 7 + me) & 255] += at;
      give_back(std::move(scratch));
    }
  });
}
