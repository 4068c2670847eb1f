// SPDX-License-Identifier: MIT
// Each thread decodes messages and gives them to the next one, which handles and frees them.
// People asked whether another malloc helps where one thread allocates and another frees; the answer was that
// such patterns unbalance the caches of threads, and that batches help. Not measured there.
#include <atomic>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {
constexpr unsigned kPlaces = 4096;
struct Queue {
  alignas(64) std::atomic<unsigned> put = 0;
  alignas(64) std::atomic<unsigned> taken = 0;
  alignas(64) char* places[kPlaces] = {};

  bool try_put(char* message) {
    const unsigned at = put.load(std::memory_order_relaxed);
    if (at - taken.load(std::memory_order_acquire) == kPlaces) return false;
    places[at % kPlaces] = message;
    put.store(at + 1, std::memory_order_release);
    return true;
  }
  char* try_take() {
    const unsigned at = taken.load(std::memory_order_relaxed);
    if (at == put.load(std::memory_order_acquire)) return nullptr;
    char* const message = places[at % kPlaces];
    taken.store(at + 1, std::memory_order_release);
    return message;
  }
};
}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 2);
  std::vector<Queue> queues(threads);
  rebuilt::in_threads(argc, argv, [&](unsigned me, long messages) {
    long handled = 0;
    const auto handle = [&] {
      char* const message = queues[me].try_take();
      if (message == nullptr) return std::this_thread::yield();
      ++handled;
      std::free(message);
    };
    for (long i = 0; i < messages; ++i) {
      char* const message = static_cast<char*>(std::malloc(static_cast<std::size_t>(100 + i % 300)));
      std::memset(message, 1, 32);
      while (!queues[(me + 1) % threads].try_put(message)) handle();
      if (i % 2 == 0) handle(), handle();
    }
    while (handled < messages) handle();
  });
}
