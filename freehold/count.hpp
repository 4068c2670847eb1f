// SPDX-License-Identifier: MIT
/// @file
/// Exact counts of what a thread allocates, for tests: "this function allocates at most 3 times", "this loop never does".
///
///     EXPECT_LE(freehold::count_allocations([&] { parse(request); }).allocations, 3);
///
///     void on_tick() {
///       const freehold::NoMalloc none;   // the first allocation in here ends the process, with its call stack
///       ...
///     }
///
/// For programs whose malloc is Freehold's: linked to freehold::malloc or freehold::malloc_shared, or with libfreehold.so
/// preloaded and freehold/malloc.h's functions found there. In C: freehold_count_begin() of freehold/malloc.h.
#pragma once
#include <new>
#include <utility>

#include "freehold/base/cxx20.hpp"
#include "freehold/malloc.h"

namespace freehold {

/// The allocations and frees of the calling thread: see freehold_count_t.
using AllocationCounts = freehold_count_t;

/// Counts what its thread allocates and frees, from its construction to end() or its own end. Counts may nest.
/// Threads: constructed, ended and destroyed by one thread. Cost: as freehold_count_begin().
class AllocationCount {
 public:
  /// @param on_allocation  what the first allocation meets: nothing, a report, or the end of the process
  /// @throws std::bad_alloc if there is no memory
  explicit AllocationCount(freehold_on_allocation on_allocation = FREEHOLD_COUNT) {
    if (freehold_count_begin(on_allocation) != 0) throw std::bad_alloc();
  }
  ~AllocationCount() {
    if (counts_) (void)end();
  }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  /// Ends the count. Pre: it was not ended before; counts that began later have ended.
  /// @return what was counted
  AllocationCounts end() noexcept {
    AllocationCounts counts{};
    (void)freehold_count_end(&counts, sizeof counts);
    counts_ = false;
    return counts;
  }

 private:
  bool counts_ = true;
};

/// A scope in which its thread must not allocate. What it frees is not looked at. An allocation that the compiler leaves
/// out, as it may where a new and its delete are both in sight, is none.
class NoMalloc {
 public:
  /// @param on_allocation  what the first allocation meets. FREEHOLD_ABORT_AFTER_REPORT: the end of the process, with its
  ///                       call stack on standard error; FREEHOLD_REPORT: the stack is written, and ok() says so;
  ///                       FREEHOLD_COUNT: ok() alone says so
  /// @throws std::bad_alloc if there is no memory
  explicit NoMalloc(freehold_on_allocation on_allocation = FREEHOLD_ABORT_AFTER_REPORT) : count_(on_allocation) {}

  /// Ends the scope early. Pre: it was not ended before.
  /// @return true if nothing was allocated in it
  [[nodiscard]] bool ok() noexcept { return count_.end().allocations == 0; }

 private:
  AllocationCount count_;
};

/// Calls a function and counts what the calling thread allocates in it.
/// @param function  is called without arguments; what it throws ends the count
/// @return the counts
/// @throws std::bad_alloc if there is no memory for the count
template <class Function>
AllocationCounts count_allocations(Function&& function) {
  AllocationCount count;
  std::forward<Function>(function)();
  return count.end();
}

}  // namespace freehold
