// SPDX-License-Identifier: MIT
// Several tagged stacks over one array of links: the distribution of "Testing distributed memory pools" in which a slot has
// no home. release pushes onto the stack that the Spread names now, acquire pops from there; when that is empty, from the
// others in turn, or from none (distributed.hpp: TakeFromNeighbour, Fail). So slots follow those who use them, and gather
// where they are released.
//
//   Invariant (at rest): the lists from all heads together visit each free slot once, and no other.
//
// The Layout says what shares cache lines. LinesForHeads: each stack's head has a line, 16 links share one, slots
// lie as close as their size allows. Padded, the article's: each head, each link and each slot begins a line. Packed:
// nothing does, so that threads with a stack each write to the same lines, and false sharing shows.
//
// Linearisation: as tagged_stack.hpp; null where shortage.hpp says. Any thread; lock-free. Cost: one compare-exchange each
// on a stack's line, plus the line of the link. Bookkeeping: 4 bytes a slot (Padded: 64), a line a stack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "freehold/pool/memory.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/strategies/distributed.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/slot_set_pool.hpp"
#include "freehold/strategies/spread.hpp"

namespace freehold::pool {

// Array elements at least so many bytes apart.
template <class T, std::size_t kBytes>
class SpacedArray {
 public:
  explicit SpacedArray(std::size_t count) : elements_(count) {}
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return elements_[i].value; }

 private:
  struct alignas(std::max(kBytes, alignof(T))) Element {
    T value;
  };
  ZeroedArray<Element> elements_;
};

/// The heads of stacks begin cache lines.
struct LinesForHeads {
  static constexpr std::size_t kHead = base::kCacheLine;  ///< bytes from a head to the next, at least
  static constexpr std::size_t kLink = 1;                 ///< the same of links
  static constexpr std::size_t kSlot = 1;                 ///< slots' addresses are multiples of it
};
/// Heads, links and slots begin cache lines.
struct Padded {
  static constexpr std::size_t kHead = base::kCacheLine;  ///< as in LinesForHeads
  static constexpr std::size_t kLink = base::kCacheLine;  ///< as in LinesForHeads
  static constexpr std::size_t kSlot = base::kCacheLine;  ///< as in LinesForHeads
};
/// Heads, links and slots lie as close together as their sizes allow.
struct Packed {
  static constexpr std::size_t kHead = 1;  ///< as in LinesForHeads
  static constexpr std::size_t kLink = 1;  ///< as in LinesForHeads
  static constexpr std::size_t kSlot = 1;  ///< as in LinesForHeads
};

// The stacks of slot numbers, `count` of them, that share `slots` slots evenly at first.
template <sync::Atomics A, DistributedStackOrders O, class WhenEmpty, class Layout>
class StackArray {
 public:
  static constexpr std::uint32_t kNone = TaggedHead<A, O.stack>::kEmpty;

  // Errors: std::bad_alloc.
  StackArray(std::size_t slots, unsigned count) : count_(count), links_(slots), heads_(count) {
    for (std::size_t i = 0; i < count; ++i) heads_[i].fill(links_, slots * i / count, slots * (i + 1) / count);
  }

  [[nodiscard]] unsigned count() const noexcept { return count_; }

  // A slot of stack `here`, or where WhenEmpty looks; or kNone.
  template <class Contention>
  [[nodiscard]] std::uint32_t take_at(unsigned here, Contention& contention) noexcept {
    if (const std::uint32_t slot = heads_[here].pop(links_, contention); slot != kNone || !WhenEmpty::kAsksNeighbours)
        [[likely]]
      return slot;
    if (const std::uint32_t slot = pop_from(here + 1 == count_ ? 0 : here + 1, contention); slot != kNone) return slot;
    return shortage_.search(kNone, [&] { return pop_from(here, contention); });
  }
  template <class Contention>
  void put_at(unsigned here, std::size_t slot, Contention& contention) noexcept {
    heads_[here].push(links_, static_cast<std::uint32_t>(slot), contention);
    if constexpr (WhenEmpty::kAsksNeighbours) shortage_.released();
  }

 private:
  template <class Contention>
  [[nodiscard]] std::uint32_t pop_from(unsigned first, Contention& contention) noexcept {
    for (unsigned i = 0, stack = first; i < count_; ++i, stack = stack + 1 == count_ ? 0 : stack + 1)
      if (const std::uint32_t slot = heads_[stack].pop(links_, contention); slot != kNone) return slot;
    return kNone;
  }

  unsigned count_;
  SpacedArray<typename A::template atomic<std::uint32_t>, Layout::kLink> links_;
  SpacedArray<TaggedHead<A, O.stack>, Layout::kHead> heads_;
  Shortage<A, O.shortage> shortage_;
};

// The same, of which the Spread names one.
template <Spread S, DistributedStackOrders O, class WhenEmpty = TakeFromNeighbour, class Layout = LinesForHeads>
class RoamingStacks : public StackArray<typename S::Atomics, O, WhenEmpty, Layout> {
 public:
  using RoamingStacks::StackArray::StackArray;
  [[nodiscard]] std::uint32_t take(auto& contention) noexcept { return this->take_at(S::shard(this->count()), contention); }
  void put(std::size_t slot, auto& contention) noexcept { this->put_at(S::shard(this->count()), slot, contention); }
};

template <Spread S, class Contention, DistributedStackOrders O, class WhenEmpty = TakeFromNeighbour,
          class Layout = LinesForHeads>
class RoamingStacksPool : public SlotSetPool<RoamingStacks<S, O, WhenEmpty, Layout>, Contention> {
 public:
  static constexpr bool kAsksNeighbours = WhenEmpty::kAsksNeighbours;

  explicit RoamingStacksPool(const PoolShape& shape) : RoamingStacksPool::SlotSetPool(laid_out(shape), shards_of(shape)) {}

  [[nodiscard]] unsigned shards() const noexcept { return this->free_.count(); }

 private:
  static PoolShape laid_out(PoolShape shape) noexcept {
    shape.alignment = std::max(shape.alignment, Layout::kSlot);
    return shape;
  }
};

template <template <class> class SpreadOf>
struct RoamingStacksBy {
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr DistributedStackOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, DistributedStackOrders O = kOrders>
  using Pool = RoamingStacksPool<SpreadOf<A>, Contention, O>;
};
/// A lock-free stack for each few threads, round robin; a slot stays with the thread that released it.
struct RoamingStacksByThread : RoamingStacksBy<ByThread> {
  static constexpr std::string_view kName = "roaming-stacks-by-thread";
};
/// A lock-free stack for each CPU; a slot stays with the CPU that released it. For producers and consumers.
struct RoamingStacksByCpu : RoamingStacksBy<ByCpu> {
  static constexpr std::string_view kName = "roaming-stacks-by-cpu";
};

}  // namespace freehold::pool
