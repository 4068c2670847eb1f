// SPDX-License-Identifier: MIT
// Several tagged stacks over one array of links: the distribution of "Testing distributed memory pools" in which a slot has
// no home. release pushes onto the stack that the Spread names now, acquire pops from there, and from the others in turn
// when that is empty: so slots follow those who use them, and gather where they are released.
//
//   Invariant (at rest): the lists from all heads together visit each free slot once, and no other.
//
// Linearisation: as tagged_stack.hpp; null where shortage.hpp says. Any thread; lock-free.
// Cost: one compare-exchange each on a stack's line, plus the line of the link. Bookkeeping: 4 bytes a slot, a line a stack.
#pragma once
#include <cstddef>
#include <cstdint>

#include "freehold/pool/memory.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "lab/strategies/distributed.hpp"
#include "lab/strategies/shortage.hpp"
#include "lab/strategies/slot_set_pool.hpp"
#include "lab/strategies/spread.hpp"

namespace freehold::pool {

// The stacks of slot numbers, `count` of them, that share `slots` slots evenly at first.
template <Spread S, DistributedStackOrders O>
class RoamingStacks {
 public:
  using A = typename S::Atomics;
  static constexpr std::uint32_t kNone = TaggedHead<A, O.stack>::kEmpty;

  // Errors: std::bad_alloc.
  RoamingStacks(std::size_t slots, unsigned count) : count_(count), links_(slots), heads_(count) {
    for (std::size_t i = 0; i < count; ++i) heads_[i].head.fill(links_, slots * i / count, slots * (i + 1) / count);
  }

  [[nodiscard]] unsigned count() const noexcept { return count_; }

  template <class Contention>
  [[nodiscard]] std::uint32_t take(Contention& contention) noexcept {
    const unsigned here = S::shard(count_);
    if (const std::uint32_t slot = heads_[here].head.pop(links_, contention); slot != kNone) [[likely]]
      return slot;
    if (const std::uint32_t slot = pop_from(here + 1 == count_ ? 0 : here + 1, contention); slot != kNone) return slot;
    return shortage_.search(kNone, [&] { return pop_from(here, contention); });
  }

  template <class Contention>
  void put(std::size_t slot, Contention& contention) noexcept {
    heads_[S::shard(count_)].head.push(links_, static_cast<std::uint32_t>(slot), contention);
    shortage_.released();
  }

 private:
  struct alignas(base::kCacheLine) Line {
    TaggedHead<A, O.stack> head;
  };

  template <class Contention>
  [[nodiscard]] std::uint32_t pop_from(unsigned first, Contention& contention) noexcept {
    for (unsigned i = 0, stack = first; i < count_; ++i, stack = stack + 1 == count_ ? 0 : stack + 1)
      if (const std::uint32_t slot = heads_[stack].head.pop(links_, contention); slot != kNone) return slot;
    return kNone;
  }

  unsigned count_;
  StackLinks<A> links_;
  ZeroedArray<Line> heads_;
  Shortage<A, O.shortage> shortage_;
};

template <Spread S, class Contention, DistributedStackOrders O>
class RoamingStacksPool : public SlotSetPool<RoamingStacks<S, O>, Contention> {
 public:
  explicit RoamingStacksPool(const PoolShape& shape)
      : SlotSetPool<RoamingStacks<S, O>, Contention>(shape, shards_of(shape)) {}

  [[nodiscard]] unsigned shards() const noexcept { return this->free_.count(); }
};

struct RoamingStacksByCpu {
  static constexpr std::string_view kName = "roaming-stacks-by-cpu";
  static constexpr std::string_view kSource = "article 1, Array_of_pools_t, current processor, released to the current one";
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr DistributedStackOrders kOrders{};
  static constexpr auto kUnobservable = kUnobservableInScenarios<0, 2, 3, 4, 5>;
  template <sync::Atomics A, class Contention = sync::IgnoreContention, DistributedStackOrders O = kOrders>
  using Pool = RoamingStacksPool<ByCpu<A>, Contention, O>;
};

}  // namespace freehold::pool
