// SPDX-License-Identifier: MIT
// Policies that a pool may be compiled with, beside NativeAtomics.
//
// UnsharedAtomics: for one thread at a time.
//
// Contention: how often threads got in each other's way, compare-exchanges that had to be repeated, and waits for a lock, as
// a share of the operations. IgnoreContention compiles to nothing; CountContention keeps one cell, on a separate line, for
// each of kCells threads, so that counting does not cause contention itself.
//
//   Invariant: a cell is written by the threads whose number is congruent to it modulo kCells; a sum read while threads
//   run is a snapshot of each cell, not of all at one instant.
//
// Any thread. Counting: one relaxed addition on a line that is the thread's own (shared beyond kCells threads).
// Source: the contention counter of "Testing distributed memory pools".
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::sync {

// For one thread at a time: plain memory with the interface of atomics, so that every algorithm has an unlocked form.
// Does not happen: there is no other thread to wait for.
struct UnsharedAtomics {
  template <class T>
  class atomic {
    using Order = std::memory_order;

   public:
    constexpr atomic() noexcept = default;
    constexpr atomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    [[nodiscard]] T load(Order = {}) const noexcept { return value_; }
    void store(T value, Order = {}) noexcept { value_ = value; }
    T exchange(T value, Order = {}) noexcept { return std::exchange(value_, value); }
    bool compare_exchange_strong(T& expected, T value, Order = {}, Order = {}) noexcept {
      if (value_ != expected) return expected = value_, false;
      return value_ = value, true;
    }
    bool compare_exchange_weak(T& expected, T value, Order = {}, Order = {}) noexcept {
      return compare_exchange_strong(expected, value);
    }
    T fetch_add(T value, Order = {}) noexcept { return exchange(value_ + value); }
    T fetch_sub(T value, Order = {}) noexcept { return exchange(value_ - value); }
    T fetch_or(T value, Order = {}) noexcept { return exchange(value_ | value); }
    T fetch_and(T value, Order = {}) noexcept { return exchange(value_ & value); }

   private:
    T value_{};
  };
  template <class T>
  using var = NativeAtomics::var<T>;

  static constexpr void fence(std::memory_order) noexcept {}
  static constexpr void pause() noexcept {}
  static constexpr void yield() noexcept {}
  static constexpr void light_fence() noexcept {}
  static constexpr void heavy_fence() noexcept {}
  static constexpr bool may_fence_heavily() noexcept { return true; }
  static constexpr std::uint32_t thread_number() noexcept { return 0; }
  static constexpr std::uint32_t thread_id() noexcept { return 1; }
  template <class T>
  [[gnu::visibility("hidden")]] static T& per_thread() noexcept {
    return NativeAtomics::per_thread<T>();
  }
  template <class T>
  [[gnu::visibility("hidden")]] static T& per_process() noexcept {
    return NativeAtomics::per_process<T>();
  }
  static void at_thread_exit(ExitCall call) noexcept { NativeAtomics::at_thread_exit(call); }
  static constexpr unsigned cpu_id() noexcept { return 0; }
  static constexpr void wait(const atomic<std::uint32_t>&, std::uint32_t) noexcept {}
  static constexpr void notify_one(atomic<std::uint32_t>&) noexcept {}
  static constexpr void notify_all(atomic<std::uint32_t>&) noexcept {}
  template <class T>
  static constexpr T decide(T value, T) noexcept {
    return value;
  }
};
static_assert(Atomics<UnsharedAtomics>);

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
