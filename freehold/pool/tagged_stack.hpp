// Lock-free stack of slot numbers (Treiber 1986), the SList pool of "Testing distributed memory pools" (its Pool_t).
// The head packs {tag, number}; every successful change increments the tag, so that a slot which was popped and pushed back
// in between is visible as a change: no ABA within 2^32 operations of one compare-exchange. The links lie in an array
// beside the slots, so that a released slot is not touched and a stale reader reads a link, never somebody's data.
//
//   Invariant (at rest): the chain from the head ends after as many links as slots are free, and visits none twice.
//
// Linearisation: acquire at its successful compare-exchange (or the load that saw the stack empty), release at its own.
// Any thread; lock-free. Cost: one compare-exchange each on the one line that all share, plus the line of the link.
// Bookkeeping: 4 bytes a slot and one line.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"

namespace freehold::pool {

struct TaggedStackOrders {
  // acquire: pairs with kPush; the link below the top, and what the slot's former owner did, are visible.
  std::memory_order pop_look = std::memory_order_acquire;
  // acquire: a failed compare-exchange is the next look.
  std::memory_order pop_again = std::memory_order_acquire;
  // release: publishes the slot's link and its former owner's last use.
  std::memory_order push = std::memory_order_release;
};

template <sync::Atomics A, class Contention, TaggedStackOrders O>
class TaggedStackPool {
 public:
  explicit TaggedStackPool(const PoolShape& shape) : slots_(shape), next_(shape.slots) {
    FREEHOLD_ASSERT(shape.slots < kEmpty);
    for (std::uint32_t i = 0; i < shape.slots; ++i)
      next_[i].store(i + 1 < shape.slots ? i + 1 : kEmpty, std::memory_order_relaxed);  // relaxed: nobody looks yet
  }

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    std::uint64_t seen = head_.load(O.pop_look);
    while (index_of(seen) != kEmpty) {
      // relaxed: may be stale; then the tag has changed and the compare-exchange fails.
      const std::uint32_t below = next_[index_of(seen)].load(std::memory_order_relaxed);
      // relaxed on success: the look was the acquire, and the release sequence of the last push goes on through us.
      if (head_.compare_exchange_weak(seen, successor(seen, below), std::memory_order_relaxed, O.pop_again))
        return slots_.hand_out(index_of(seen));
      contention_.retried();
    }
    return nullptr;
  }

  void release(void* slot) noexcept {
    const std::size_t number = slots_.take_back(slot);
    if (number == Slots::kNone) return;
    contention_.operated();
    const auto mine = static_cast<std::uint32_t>(number);
    std::uint64_t seen = head_.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    for (;;) {
      next_[mine].store(index_of(seen), std::memory_order_relaxed);  // relaxed: published by the push
      if (head_.compare_exchange_weak(seen, successor(seen, mine), O.push, std::memory_order_relaxed)) return;
      contention_.retried();
    }
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  [[nodiscard]] static constexpr std::uint32_t index_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head);
  }
  // A head with the next tag.
  [[nodiscard]] static constexpr std::uint64_t successor(std::uint64_t head, std::uint32_t index) noexcept {
    return ((head >> 32) + 1) << 32 | index;
  }

  // Nobody writes after construction.
  Slots slots_;
  ZeroedArray<typename A::template atomic<std::uint32_t>> next_;
  // Any thread.
  alignas(base::kCacheLine) typename A::template atomic<std::uint64_t> head_{0};
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct TaggedStack {
  static constexpr std::string_view kName = "tagged-stack";
  static constexpr std::string_view kSource = "article 1, Pool_t (SList)";
  static constexpr bool kFindsLast = true;
  static constexpr TaggedStackOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, TaggedStackOrders O = kOrders>
  using Pool = TaggedStackPool<A, Contention, O>;
};

}  // namespace freehold::pool
