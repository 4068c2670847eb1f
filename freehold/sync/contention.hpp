// SPDX-License-Identifier: MIT
// Counts how often threads got in each other's way: compare-exchanges that had to be repeated, and waits for a lock, as a
// share of the operations. A policy of every pool: IgnoreContention compiles to nothing; CountContention keeps one cell, on
// a line of its own, for each of kCells threads, so that counting does not cause contention itself.
//
//   Invariant: a cell is written by the threads whose number is congruent to it modulo kCells; a sum read while threads
//   run is a snapshot of each cell, not of all at one instant.
//
// Any thread. Counting: one relaxed addition on a line that is the thread's own (shared beyond kCells threads).
// Source: the contention counter of "Testing distributed memory pools".
#pragma once
#include <atomic>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::sync {

struct Contention {
  std::uint64_t operations = 0;  // acquires and releases
  std::uint64_t retries = 0;     // compare-exchanges that failed because another thread came between
  std::uint64_t waits = 0;       // locks that were held by another thread

  // Conflicts as a share of the operations; 0 if there were none of either.
  [[nodiscard]] constexpr double share() const noexcept {
    return operations == 0 ? 0.0 : static_cast<double>(retries + waits) / static_cast<double>(operations);
  }
  constexpr Contention& operator+=(const Contention& other) noexcept {
    operations += other.operations;
    retries += other.retries;
    waits += other.waits;
    return *this;
  }
};

// The default: counts nothing.
struct IgnoreContention {
  static constexpr bool kCounts = false;
  static constexpr void operated() noexcept {}
  static constexpr void retried() noexcept {}
  static constexpr void waited() noexcept {}
  [[nodiscard]] static constexpr Contention total() noexcept { return {}; }
};

template <Atomics A>
class CountContention {
 public:
  static constexpr bool kCounts = true;
  static constexpr unsigned kCells = 64;

  void operated() noexcept { add(mine().operations); }
  void retried() noexcept { add(mine().retries); }
  void waited() noexcept { add(mine().waits); }

  [[nodiscard]] Contention total() const noexcept {
    Contention sum;
    for (const Cell& cell : cells_) {
      // relaxed: statistics, they publish nothing.
      sum += {cell.operations.load(std::memory_order_relaxed), cell.retries.load(std::memory_order_relaxed),
              cell.waits.load(std::memory_order_relaxed)};
    }
    return sum;
  }

 private:
  using Counter = typename A::template atomic<std::uint64_t>;
  struct alignas(base::kCacheLine) Cell {
    Counter operations{0}, retries{0}, waits{0};
  };

  Cell& mine() noexcept { return cells_[A::thread_number() % kCells]; }
  static void add(Counter& counter) noexcept { counter.fetch_add(1, std::memory_order_relaxed); }

  Cell cells_[kCells];
};

}  // namespace freehold::sync
