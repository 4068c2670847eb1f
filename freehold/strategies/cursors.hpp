// SPDX-License-Identifier: MIT
// Where each thread looks first: a place among `places`, for a pool that searches. The threads share kCells cursors, each on
// a separate line, that start evenly spread, so that threads work in different places and find theirs again.
//
//   Invariant: a cursor is below `places`; it is a hint and nothing depends on its value.
//
// Any thread. Cost: one load of a line that is mostly the thread's own; one store when the place changes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"

namespace freehold::pool {

template <sync::Atomics A>
class Cursors {
 public:
  static constexpr unsigned kCells = 16;

  explicit Cursors(std::size_t places) noexcept {
    for (unsigned i = 0; i < kCells; ++i)
      cells_[i].place.store(static_cast<std::uint32_t>(places * i / kCells), std::memory_order_relaxed);
  }

  // relaxed, both: a hint publishes nothing.
  [[nodiscard]] std::size_t here() const noexcept { return cells_[mine()].place.load(std::memory_order_relaxed); }
  void move(std::size_t place) noexcept {
    cells_[mine()].place.store(static_cast<std::uint32_t>(place), std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::uint32_t mine() noexcept { return A::thread_number() % kCells; }

  struct alignas(base::kCacheLine) Cell {
    typename A::template atomic<std::uint32_t> place{0};
  };
  Cell cells_[kCells];
};

}  // namespace freehold::pool
