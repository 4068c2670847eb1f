// SPDX-License-Identifier: MIT
// Several pools as one: the Array_of_pools_t of "Testing distributed memory pools". acquire turns to the shard that the
// Spread names; release goes to the slot's home, the shard it came from, which its address tells: the shards' slots lie in
// one range, at equal distances that are a power of two. So slots never move between shards, in whatever thread they end.
//
//   Invariant: shard i has slots / shards slots, rounded up or down, at start + (i << part_shift_).
//
// WhenEmpty says what an acquire does that finds its shard empty. Fail: null, though others may have slots.
// TakeFromNeighbour: it looks at the others in turn. It returns null only if none had any (shortage.hpp), provided that the
// shard's reads and writes of its free slots are seq_cst; else it may miss a release that does not happen before it.
//
// Any thread. Cost: the shard's, the spread's, a shift; PoolShape::shards says how many. Bookkeeping: the shards'; up to
// twice the slots' address space is reserved, of which only the slots are touched.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>

#include "freehold/base/check.hpp"
#include "freehold/os/cpu.hpp"
#include "freehold/pool/concept.hpp"
#include "freehold/pool/memory.hpp"
#include "freehold/pool/slots.hpp"
#include "freehold/pool/tagged_stack.hpp"
#include "freehold/strategies/shortage.hpp"
#include "freehold/strategies/spread.hpp"

namespace freehold::pool {

/// An acquire that finds its shard empty returns null, though other shards may have slots.
struct Fail {
  /// Says whether acquire looks at the other shards.
  static constexpr bool kAsksNeighbours = false;
};
/// An acquire that finds its shard empty looks at the others in turn.
struct TakeFromNeighbour {
  /// Says whether acquire looks at the other shards.
  static constexpr bool kAsksNeighbours = true;
};

// How many shards a pool of this shape is made of: as many as asked for, but each has a slot.
[[nodiscard]] inline unsigned shards_of(const PoolShape& shape) noexcept {
  static const unsigned cpus = os::usable_cpus().cpus;  // asks the system, so once
  return static_cast<unsigned>(std::min<std::size_t>(shape.shards != 0 ? shape.shards : cpus, shape.slots));
}

/// Several pools as one: acquire turns to the shard that the spread names, release to the slot's home shard.
/// Threads: any. Cost: the shard's, and the spread's.
/// @tparam P           the pool that each shard is
/// @tparam S           the spread: ByThread, ByHash, ByCpu
/// @tparam WhenEmpty   what an acquire does whose shard is empty: Fail, TakeFromNeighbour
/// @tparam Contention  what is counted
/// @tparam O           memory orders; for tests
template <SlotPool P, Spread S, class WhenEmpty = TakeFromNeighbour, class Contention = sync::IgnoreContention,
          ShortageOrders O = ShortageOrders{}>
class Distributed {
 public:
  /// Makes a pool of `shape`, its slots in as many shards as it says (0: one for each usable CPU).
  /// Errors: std::bad_alloc.
  explicit Distributed(const PoolShape& shape)
      : count_(shards_of(shape)),
        part_shift_(shift_of(shape, count_)),
        memory_(bytes_of(count_, part_shift_), shape.alignment),
        shards_(count_) {
    PoolShape part = shape;
    part.shards = 1;
    part.memory_has_room = true;
    for (unsigned i = 0; i < count_; ++i) {
      part.slots = shape.slots / count_ + (i < shape.slots % count_ ? 1 : 0);
      part.memory = static_cast<std::byte*>(memory_.start()) + (std::size_t{i} << part_shift_);
      shards_.emplace(part);
      capacity_ += part.slots;
    }
  }

  /// Hands out a free slot; null: WhenEmpty says when.
  [[nodiscard]] void* acquire() noexcept {
    contention_.operated();
    const unsigned home = S::shard(count_);
    if (void* slot = shards_[home].acquire(); slot != nullptr) [[likely]]
      return slot;
    if constexpr (!WhenEmpty::kAsksNeighbours) return nullptr;
    if (void* slot = take_from(home + 1 == count_ ? 0 : home + 1); slot != nullptr) return slot;
    return shortage_.search(static_cast<void*>(nullptr), [&] { return take_from(home); });
  }

  /// Takes back `slot`, which acquire() gave to any thread.
  void release(void* slot) noexcept {
    contention_.operated();
    shards_[home_of(slot)].release(slot);
    if constexpr (WhenEmpty::kAsksNeighbours) shortage_.released();
  }

  /// @return how many slots there are.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// @return how many shards there are.
  [[nodiscard]] unsigned shards() const noexcept { return count_; }

  /// @return the shards' retries and waits; operations as the callers see them, not the shards that a search asked.
  [[nodiscard]] sync::Contention contention() const noexcept {
    sync::Contention sum;
    for (unsigned i = 0; i < count_; ++i) sum += shards_[i].contention();
    sum.operations = contention_.total().operations;
    return sum;
  }

 private:
  // `count` objects that cannot move, made one after the other.
  class Shards {
   public:
    explicit Shards(unsigned count) : memory_(count * sizeof(P), alignof(P)) {}
    Shards(const Shards&) = delete;
    Shards& operator=(const Shards&) = delete;
    ~Shards() {
      while (made_ > 0) (*this)[--made_].~P();
    }
    void emplace(const PoolShape& shape) {
      ::new (static_cast<void*>(&(*this)[made_])) P(shape);
      ++made_;
    }
    [[nodiscard]] P& operator[](unsigned i) const noexcept { return static_cast<P*>(memory_.start())[i]; }

   private:
    Memory memory_;
    unsigned made_ = 0;
  };

  // Returns the shift of the distance between two shards' slots.
  static unsigned shift_of(const PoolShape& shape, unsigned shards) {
    PoolShape part = shape;
    part.memory = nullptr;  // it has room, as that of all parts
    part.slots = base::ceil_div(shape.slots, shards);
    const std::size_t bytes = Slots::bytes_for(part);
    if (bytes > ~std::size_t{0} / 2) base::out_of_memory();
    return static_cast<unsigned>(std::countr_zero(std::bit_ceil(bytes)));
  }
  static std::size_t bytes_of(unsigned shards, unsigned part_shift) {
    if (shards > ~std::size_t{0} >> part_shift) base::out_of_memory();
    return std::size_t{shards} << part_shift;
  }

  [[nodiscard]] unsigned home_of(const void* slot) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(slot) - reinterpret_cast<std::uintptr_t>(memory_.start());
    const std::size_t home = offset >> part_shift_;
    if constexpr (kChecked)
      if (home >= count_) return 0;  // which finds that it is foreign
    return static_cast<unsigned>(home);
  }

  [[nodiscard]] void* take_from(unsigned first) noexcept {
    for (unsigned i = 0, shard = first; i < count_; ++i, shard = shard + 1 == count_ ? 0 : shard + 1)
      if (void* slot = shards_[shard].acquire(); slot != nullptr) return slot;
    return nullptr;
  }

  // Written by the constructor only.
  unsigned count_;
  unsigned part_shift_;
  std::size_t capacity_ = 0;
  Memory memory_;  // the slots of all
  Shards shards_;
  // Any thread.
  Shortage<typename S::Atomics, O> shortage_;
  alignas(base::kCacheLine) [[no_unique_address]] Contention contention_;
};

struct DistributedStackOrders {
  TaggedStackOrders stack = kStackAmongOthers;
  ShortageOrders shortage;
};

// Tagged stacks, a slot always returning to its own.
template <template <class> class SpreadOf>
struct DistributedStacks {
  static constexpr bool kFindsLast = true;
  static constexpr double kBookkeepingBytes = 4;
  static constexpr DistributedStackOrders kOrders{};
  template <sync::Atomics A, class Contention = sync::IgnoreContention, DistributedStackOrders O = kOrders>
  using Pool = Distributed<TaggedStackPool<A, Contention, O.stack>, SpreadOf<A>, TakeFromNeighbour, Contention, O.shortage>;
};

/// Lock-free stacks, one for each few threads, round robin; a slot returns to its own.
struct StacksByThread : DistributedStacks<ByThread> {
  static constexpr std::string_view kName = "stacks-by-thread";
};
/// Lock-free stacks, chosen by a hash of the thread's id; a slot returns to its own.
struct StacksByHash : DistributedStacks<ByHash> {
  static constexpr std::string_view kName = "stacks-by-hash";
};
/// Lock-free stacks, one for each CPU; a slot returns to its own.
struct StacksByCpu : DistributedStacks<ByCpu> {
  static constexpr std::string_view kName = "stacks-by-cpu";
};

}  // namespace freehold::pool
