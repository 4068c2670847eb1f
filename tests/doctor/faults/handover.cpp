// SPDX-License-Identifier: MIT
// Fault: two threads hand each other every block that they allocate, through queues of one reader and one writer.
#include <atomic>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

class Queue {
 public:
  bool put(char* block) {
    const std::size_t at = written_.load(std::memory_order_relaxed);
    if (at - read_.load(std::memory_order_acquire) == kRoom) return false;
    places_[at % kRoom] = block;
    written_.store(at + 1, std::memory_order_release);
    return true;
  }
  char* take() {
    const std::size_t at = read_.load(std::memory_order_relaxed);
    if (at == written_.load(std::memory_order_acquire)) return nullptr;
    char* const block = places_[at % kRoom];
    read_.store(at + 1, std::memory_order_release);
    return block;
  }

 private:
  static constexpr std::size_t kRoom = 1024;
  alignas(64) std::atomic<std::size_t> written_{0};
  alignas(64) std::atomic<std::size_t> read_{0};
  alignas(64) char* places_[kRoom];
};

Queue g_queues[2];

// Frees all that is there, and says how many that was.
std::size_t empty(unsigned queue) {
  std::size_t freed = 0;
  for (char* block; (block = g_queues[queue].take()) != nullptr; ++freed) std::free(block);
  return freed;
}

void partner(unsigned me, std::size_t rounds, std::size_t bytes) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    char* const block = static_cast<char*>(std::malloc(bytes + i % 64));
    block[0] = 'x';
    while (!g_queues[me].put(block)) {
      taken += empty(1 - me);
      std::this_thread::yield();
    }
    if (i % 16 == 0) taken += empty(1 - me);
  }
  for (; taken < rounds; taken += empty(1 - me)) std::this_thread::yield();
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"small",
                      [](const auto& options) {
                        fault::in_threads(
                            2, [&](unsigned me) { partner(me, static_cast<std::size_t>(2e6 * options.scale), 64); });
                      }}},
                    2);
}
