// SPDX-License-Identifier: MIT
// Threads that keep the machine busy in the same process while timers are measured. With Load::kHeap they allocate and free
// blocks of mixed sizes by malloc, and hand some of them to each other. With Load::kBusy they do the same accesses to blocks
// that they keep. The difference of both loads is the effect of the shared heap.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lab/timers/job.hpp"

namespace freehold::lab::timers {

class Background {
 public:
  // Returns when every thread is at work. Load::kAlone: there are none.
  Background(Load load, std::uint32_t threads);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Blocks touched by all threads so far.
  [[nodiscard]] std::uint64_t operations() const noexcept;
  // Returns when every thread has got on since the call: all of them are still at work.
  void wait_for_each() const;

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> operations{0};
  };

  void work(Load load, std::uint32_t index);

  std::atomic<bool> stop_{false};
  std::vector<Line> lines_;
  std::unique_ptr<std::atomic<void*>[]> handed_;
  std::vector<std::jthread> threads_;
};

}  // namespace freehold::lab::timers
