// SPDX-License-Identifier: MIT
// The allocators that a program brings along (facts/own_malloc.hpp), and how much of what it allocates a preloaded malloc
// reaches: counted, where the kernel permits it.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor/facts/experiment.hpp"
#include "tools/doctor/facts/own_allocator.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {

// `files`: those that the program has mapped as code. `run`: runs the program as it is, no longer than so many seconds; it
// is called at most once, and only if there is something to count.
[[nodiscard]] std::vector<OwnAllocator> own_allocators_of(const std::set<std::string>& files,
                                                          const std::function<Run(double)>& run, double seconds);
// Notes, for one with a switch, the calls of malloc as it is, and with all left to malloc.
void set_reach(OwnAllocator& own, double calls, double switched_calls);
// The treatments that the runtimes offer themselves: all is left to malloc, and this malloc is Freehold's.
void add_switches(std::vector<Variant>& variants, const std::vector<OwnAllocator>& own);

}  // namespace freehold::doctor
