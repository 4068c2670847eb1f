// SPDX-License-Identifier: MIT
// Pools of ready objects, one for each few threads: the Array_of_pools_t of "Testing distributed memory pools" as a class to
// use. A thread gets an index once, keeps it, and pops and pushes by it; or the current CPU is the index, and an entry
// returns to its pool.
//
//   Invariant: entry i lies at entries_[i] and is constructed all the time; it belongs to pool i / kPoolSize at first.
//
// The links lie beside the entries (tagged_stack.hpp), so what an entry holds is still there after a push and the next pop.
// Any thread; lock-free. Cost: one compare-exchange on the pool's line, and the line of the link.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>

#include "freehold/os/rseq.hpp"
#include "freehold/strategies/roaming_stacks.hpp"

namespace freehold::pool {

/// An array of pools of entries that live as long as it does.
/// Threads: any; not while it is made or ended.
/// @tparam Entry      what the pools hold; default-constructed by the array, destroyed by it
/// @tparam kPoolSize  entries in each pool at first
/// @tparam kPools     how many pools there are
/// @tparam Layout     what begins a cache line: Padded, the heads of the pools and every entry; Packed, nothing
template <class Entry, std::size_t kPoolSize, std::size_t kPools, class Layout = Padded>
class ArrayOfPools {
  static_assert(kPoolSize > 0 && kPools > 0 && kPools <= ~0U / kPoolSize);

 public:
  /// Makes all entries. Errors: std::bad_alloc, and what the constructor of Entry throws.
  ArrayOfPools() : stacks_(kPoolSize * kPools, kPools), entries_(std::make_unique<Cell[]>(kPoolSize * kPools)) {}

  /// @return an index for a thread to keep, 0 to kPools - 1: round robin.
  [[nodiscard]] std::size_t get_pool_index() noexcept {
    return next_.fetch_add(1, std::memory_order_relaxed) % kPools;  // relaxed: indices are only dealt out
  }

  /// Takes an entry from pool `index`. @return null if that pool is empty, whatever the others have.
  [[nodiscard]] Entry* pop(std::size_t index) noexcept {
    const std::uint32_t entry = stacks_.take_at(static_cast<unsigned>(index), ignore_);
    return entry == Stacks::kNone ? nullptr : &entries_[entry].value;
  }
  /// Puts `entry`, which a pop of any index gave, into pool `index`.
  void push(Entry* entry, std::size_t index) noexcept {
    stacks_.put_at(static_cast<unsigned>(index), number_of(entry), ignore_);
  }

  /// Takes an entry from the pool of the current CPU. @return null if that pool is empty. The entry goes back by
  /// push(entry).
  [[nodiscard]] Entry* pop() noexcept { return pop(os::current_cpu() % kPools); }
  /// Puts `entry`, which pop() gave on any CPU, back into its pool.
  void push(Entry* entry) noexcept { push(entry, number_of(entry) / kPoolSize); }

 private:
  using Stacks = StackArray<sync::NativeAtomics, DistributedStackOrders{TaggedStackOrders{}, {}}, Fail, Layout>;
  struct alignas(std::max(Layout::kSlot, alignof(Entry))) Cell {
    Entry value{};
  };
  [[nodiscard]] std::size_t number_of(const Entry* entry) const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const Cell*>(entry) - entries_.get());
  }

  Stacks stacks_;
  std::unique_ptr<Cell[]> entries_;
  alignas(base::kCacheLine) std::atomic<std::size_t> next_{0};
  [[no_unique_address]] sync::IgnoreContention ignore_;
};

}  // namespace freehold::pool
