// SPDX-License-Identifier: MIT
// How much of what a program allocates a preloaded malloc reaches, beside an allocator that the program brings along
// (own_malloc.hpp). Plain data: run/own_allocators.hpp counts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace freehold::doctor {

// An allocator that is linked into the program, or a part of its language's runtime.
struct OwnAllocator {
  std::string name;                           // "jemalloc", "CPython's allocator"
  std::string file;                           // file that has it
  std::string use_malloc;                     // "PYTHONMALLOC=malloc": the variable that leaves all to malloc; empty: none
  std::optional<double> reached;              // share of all the program's allocations that arrive at a preloaded malloc
  std::optional<std::uint64_t> calls;         // calls of its functions while they were counted
  std::optional<std::uint64_t> malloc_calls;  // calls of the C library's malloc at the same time
  std::string why_not_counted;                // empty: it was, or there are no calls that could be
};

}  // namespace freehold::doctor
