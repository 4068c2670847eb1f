// SPDX-License-Identifier: MIT
// A ring with one writer and one reader that publish every so many items. It never allocates.
#pragma once
#include <atomic>

#include "bench/macro/rows.hpp"

namespace freehold::bench {

class Ring {
 public:
  static constexpr std::size_t kSlots = 4096;

  explicit Ring(std::size_t publish_every) : publish_every_(publish_every) {}

  void push(void* block) {
    while (tail_ - head_seen_ == kSlots) {
      publish();
      wait_until([&] { return tail_ - (head_seen_ = head_.load(std::memory_order_acquire)) < kSlots; });
    }
    slots_[tail_++ % kSlots] = block;
    if (tail_ % publish_every_ == 0) publish();
  }
  void publish() { published_.store(tail_, std::memory_order_release); }  // pairs with the acquire load in pop()

  void* pop() {
    if (head_local_ == tail_seen_)
      wait_until([&] { return (tail_seen_ = published_.load(std::memory_order_acquire)) != head_local_; });
    void* block = slots_[head_local_++ % kSlots];
    // release: pairs with the acquire load in push(); the slot may be written again
    if (head_local_ % publish_every_ == 0) head_.store(head_local_, std::memory_order_release);
    return block;
  }

 private:
  template <class Condition>
  static void wait_until(Condition condition) {
    for (unsigned spins = 0; !condition(); ++spins) {
      if (spins < 256)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();
    }
  }

  alignas(64) std::size_t tail_ = 0;  // the producer's
  std::size_t head_seen_ = 0;
  std::size_t publish_every_;
  alignas(64) std::size_t head_local_ = 0;  // the consumer's
  std::size_t tail_seen_ = 0;
  alignas(64) std::atomic<std::size_t> published_{0};
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) void* slots_[kSlots] = {};
};

}  // namespace freehold::bench
