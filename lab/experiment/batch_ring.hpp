// SPDX-License-Identifier: MIT
// A ring buffer from one producer thread to one consumer thread, for the tests that hand blocks over. It publishes whole
// batches, so that its own cost stays small beside the blocks'. A thread that waits yields its CPU, because a machine may
// have fewer CPUs than threads.
//
//   Invariant: emptied <= filled <= emptied + kBatches; batches emptied…filled-1 are the consumer's, the others the
//   producer's.
#pragma once
#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace freehold::lab {

template <class T, std::size_t N>
class BatchRing {
 public:
  using Batch = std::array<T, N>;

  // The place for the next batch, once there is one. Producer.
  Batch& next_to_fill() {
    wait_while(
        [this] { return filled_.load(std::memory_order_relaxed) - emptied_.load(std::memory_order_acquire) == kBatches; });
    return batches_[filled_.load(std::memory_order_relaxed) % kBatches];
  }
  // release: pairs with next_to_empty(); publishes the batch.
  void filled() { filled_.store(filled_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // The oldest batch, once there is one. Consumer.
  Batch& next_to_empty() {
    wait_while([this] { return filled_.load(std::memory_order_acquire) == emptied_.load(std::memory_order_relaxed); });
    return batches_[emptied_.load(std::memory_order_relaxed) % kBatches];
  }
  // release: pairs with next_to_fill(); the batch has been read before it is overwritten.
  void emptied() { emptied_.store(emptied_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kBatches = 64;

  template <class Condition>
  static void wait_while(Condition condition) {
    while (condition()) ::sched_yield();
  }

  std::array<Batch, kBatches> batches_{};
  alignas(64) std::atomic<std::uint64_t> filled_{0};   // written by the producer
  alignas(64) std::atomic<std::uint64_t> emptied_{0};  // written by the consumer
};

}  // namespace freehold::lab
