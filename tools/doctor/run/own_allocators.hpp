// SPDX-License-Identifier: MIT
// The allocators that a program brings along (analysis/own_malloc.hpp), and how much of what it allocates a preloaded malloc
// reaches: counted, where the kernel permits it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {

// An allocator that is linked into the program, or a part of its language's runtime.
struct OwnAllocator {
  std::string name;                           // "jemalloc", "CPython's allocator"
  std::string file;                           // that has it
  std::string use_malloc;                     // "PYTHONMALLOC=malloc": the variable that leaves all to malloc; empty: none
  std::optional<double> reached;              // share of all the program's allocations that arrive at a preloaded malloc
  std::optional<std::uint64_t> calls;         // of its own functions, while it was counted
  std::optional<std::uint64_t> malloc_calls;  // of the C library's, at the same time
  std::string why_not_counted;                // empty: it was, or there are no calls that could be
};

// `files`: those that the program has mapped as code. `run`: runs the program as it is, no longer than so many seconds; it
// is called at most once, and only if there is something to count.
[[nodiscard]] std::vector<OwnAllocator> own_allocators_of(const std::set<std::string>& files,
                                                          const std::function<Run(double)>& run, double seconds);
// Notes, for one with a switch, the calls of malloc as it is, and with all left to malloc.
void set_reach(OwnAllocator& own, double calls, double switched_calls);
// The treatments that the runtimes offer themselves: all is left to malloc, and this malloc is Freehold's.
void add_switches(std::vector<Variant>& variants, const std::vector<OwnAllocator>& own);

}  // namespace freehold::doctor
