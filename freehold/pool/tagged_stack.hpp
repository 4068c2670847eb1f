// SPDX-License-Identifier: MIT
// Lock-free stack of slot numbers (Treiber 1986), the SList pool of "Testing distributed memory pools" (its Pool_t).
// The head packs {tag, number}; every successful change increments the tag, so that a slot which was popped and pushed back
// in between is visible as a change: no ABA within 2^32 operations of one compare-exchange. The links lie in an array
// beside the slots, so that a released slot is not touched and a stale reader reads a link, never somebody's data.
//
//   Invariant (at rest): the list from the head ends after as many links as slots are free, and visits none twice.
//
// Linearisation: acquire at its successful compare-exchange (or the load that saw the stack empty), release at its own.
// Any thread; lock-free. Cost: one compare-exchange each on the one line that all share, plus the line of the link.
// Bookkeeping: 4 bytes a slot and one line.
#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"

namespace freehold::pool {

// The order with which a compare-exchange is compiled where its failure order is the stronger one. C++17 allows that pair;
// GCC 12 does not know it: it compiles the success as seq_cst, and warns (-Winvalid-memory-model) where it sees the
// constants. So the machine gets the weakest order that covers both. The simulator gets the algorithm's own.
template <sync::Atomics A>
[[nodiscard]] consteval std::memory_order success_order(std::memory_order success, std::memory_order failure) noexcept {
  if (!std::same_as<A, sync::NativeAtomics>) return success;
  if (failure == std::memory_order_seq_cst) return failure;
  if (failure == std::memory_order_relaxed) return success;
  if (success == std::memory_order_relaxed) return failure;
  return success == std::memory_order_release ? std::memory_order_acq_rel : success;
}

struct TaggedStackOrders {
  // acquire: pairs with push; the link below the top, and what the slot's former owner did, are visible.
  std::memory_order pop_look = std::memory_order_acquire;
  // acquire: a failed compare-exchange is the next look.
  std::memory_order pop_again = std::memory_order_acquire;
  // relaxed: the look was the acquire, and the release sequence of the last push goes on through us.
  std::memory_order pop = std::memory_order_relaxed;
  // release: publishes the slot's link and its former owner's last use.
  std::memory_order push = std::memory_order_release;

  friend constexpr bool operator==(const TaggedStackOrders&, const TaggedStackOrders&) = default;
};

// The link of each slot to the one below it.
template <sync::Atomics A>
using StackLinks = ZeroedArray<typename A::template atomic<std::uint32_t>>;

template <sync::Atomics A, TaggedStackOrders O>
class TaggedHead {
 public:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};

  // The slots first, first + 1, ... end - 1, in this order from the top. Not thread-safe.
  void fill(const auto& links, std::size_t first, std::size_t end) noexcept {
    FREEHOLD_ASSERT(end < kEmpty);
    for (std::size_t i = first; i < end; ++i)
      links[i].store(i + 1 < end ? static_cast<std::uint32_t>(i + 1) : kEmpty, std::memory_order_relaxed);
    head_.store(first < end ? first : kEmpty, std::memory_order_relaxed);
  }

  // Calls f(slot) for every slot, the newest first; at rest.
  template <class F>
  void for_each(const StackLinks<A>& links, F&& f) const noexcept {
    for (std::uint32_t i = index_of(head_.load(std::memory_order_acquire)); i != kEmpty;
         i = links[i].load(std::memory_order_relaxed))
      f(i);
  }

  // The newest slot, or kEmpty.
  template <class Contention>
  [[nodiscard]] std::uint32_t pop(const auto& links, Contention& contention) noexcept {
    std::uint64_t seen = head_.load(O.pop_look);
    while (index_of(seen) != kEmpty) {
      // relaxed: may be stale; then the tag has changed and the compare-exchange fails.
      const std::uint32_t below = links[index_of(seen)].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(seen, successor(seen, below), kPopped, O.pop_again)) break;
      contention.retried();
    }
    return index_of(seen);
  }

  template <class Contention>
  void push(const auto& links, std::uint32_t slot, Contention& contention) noexcept {
    std::uint64_t seen = head_.load(std::memory_order_relaxed);  // relaxed: the compare-exchange decides
    for (;;) {
      links[slot].store(index_of(seen), std::memory_order_relaxed);  // relaxed: published by the push
      if (head_.compare_exchange_weak(seen, successor(seen, slot), O.push, std::memory_order_relaxed)) return;
      contention.retried();
    }
  }

 private:
  [[nodiscard]] static constexpr std::uint32_t index_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head);
  }
  // A head with the next tag.
  [[nodiscard]] static constexpr std::uint64_t successor(std::uint64_t head, std::uint32_t index) noexcept {
    return ((head >> 32) + 1) << 32 | index;
  }

  static constexpr std::memory_order kPopped = success_order<A>(O.pop, O.pop_again);

  typename A::template atomic<std::uint64_t> head_{kEmpty};
};

template <sync::Atomics A, class Contention, TaggedStackOrders O>
class TaggedStackPool {
 public:
  explicit TaggedStackPool(const PoolShape& shape) : slots_(shape), links_(shape.slots) {
    head_.fill(links_, 0, shape.slots);
  }

  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    const std::uint32_t slot = head_.pop(links_, contention_);
    return slot == Head::kEmpty ? nullptr : slots_.hand_out(slot);
  }

  void release(void* slot) noexcept {
    const std::size_t number = slots_.take_back(slot);
    if (number == Slots::kNone) return;
    contention_.operated();
    head_.push(links_, static_cast<std::uint32_t>(number), contention_);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.count(); }
  [[nodiscard]] sync::Contention contention() const noexcept { return contention_.total(); }

 private:
  using Head = TaggedHead<A, O>;

  // Written by the constructor only.
  Slots slots_;
  StackLinks<A> links_;
  // Any thread.
  alignas(base::kCacheLine) Head head_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct TaggedStack {
  static constexpr std::string_view kName = "tagged-stack";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr TaggedStackOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, TaggedStackOrders O = kOrders>
  using Pool = TaggedStackPool<A, Contention, O>;
};

}  // namespace freehold::pool
