// SPDX-License-Identifier: MIT
// One thread at a time looks at the kernel's limit of memory and gives memory back (engine_limit.cpp). The others wait, for
// memory may not grow in that time, but not long: the thread may be stopped.
//
//   number_    odd while a thread has the turn; each begin and each end adds one
//   in_vain_   the last turn that took longer than a thread would wait
//
//   Invariant: a turn that a thread waited for in vain is not waited for again; the next one is.
//
// Any thread. Explored in tests/model/look_turn_model.cpp.
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/sync/atomics.hpp"

namespace freehold::alloc {

struct LookTurnOrders {
  // Acquire and release: what a thread did in its turn, to the next one's and to those that waited.
  static constexpr auto kBegin = std::memory_order_acquire;
  static constexpr auto kEnd = std::memory_order_release;
  static constexpr auto kSeeEnd = std::memory_order_acquire;
};

template <sync::Atomics A, class Orders = LookTurnOrders>
class LookTurn {
 public:
  constexpr LookTurn() noexcept = default;

  // False: another thread has it.
  [[nodiscard]] bool try_begin() noexcept {
    std::uint32_t number = number_.load(std::memory_order_relaxed);  // relaxed: the exchange acquires
    return !is_taken(number) &&
           number_.compare_exchange_strong(number, number + 1, Orders::kBegin, std::memory_order_relaxed);
  }
  // The thread that has the turn calls this, also after reset(). Relaxed load: no other thread writes it.
  void end() noexcept { number_.store((number_.load(std::memory_order_relaxed) | 1) + 1, Orders::kEnd); }

  // Returns when no thread has the turn, or soon: `soon(holds)` waits until holds(), or returns false when that takes too
  // long. Relaxed: the number alone says it.
  template <class Soon>
  void wait(Soon&& soon) noexcept {
    std::uint32_t number = 0;
    const auto is_free = [&] { return !is_taken(number = number_.load(Orders::kSeeEnd)); };
    std::uint32_t in_vain = in_vain_.load(std::memory_order_relaxed);
    if (is_free() || in_vain == number || soon(is_free)) return;
    // Another thread may have given up a later turn.
    while (static_cast<std::int32_t>(number - in_vain) > 0 &&
           !in_vain_.compare_exchange_weak(in_vain, number, std::memory_order_relaxed, std::memory_order_relaxed))
      continue;
  }

  // In a fork's child, whose only thread may have it.
  void reset() noexcept {
    number_.store(0, std::memory_order_relaxed);
    in_vain_.store(0, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static bool is_taken(std::uint32_t number) noexcept { return number % 2 != 0; }

  typename A::template atomic<std::uint32_t> number_{0};
  typename A::template atomic<std::uint32_t> in_vain_{0};
};

}  // namespace freehold::alloc
