// SPDX-License-Identifier: MIT
// Exact counts of what the calling thread allocates and frees between two calls.
#pragma once
#include <cstdint>

namespace freehold::alloc {

struct Counts {
  std::uint64_t allocations = 0, frees = 0;                            // a realloc is one of each
  std::uint64_t allocated_bytes = 0, freed_bytes = 0, peak_bytes = 0;  // in bytes of usable_size()
};

// An unexpected first allocation ends this way.
enum class OnAllocation : std::uint8_t { kCount, kReport, kAbort };

// Counts the calling thread's calls from now on, those that a count around this one sees, too. kReport and kAbort write one
// line and the stack of the first allocation to standard error; kAbort ends the process then. False: no memory.
[[nodiscard]] bool begin_count(OnAllocation what = OnAllocation::kCount) noexcept;
// Ends the calling thread's newest count. False: the thread does not count.
[[nodiscard]] bool end_count(Counts& counts) noexcept;

}  // namespace freehold::alloc
