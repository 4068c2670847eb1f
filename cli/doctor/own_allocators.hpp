// The allocators that a program brings along (freehold/doctor/own_malloc.hpp), and how much of what it allocates a preloaded
// malloc reaches: counted, where the kernel permits it.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/doctor/diagnosis.hpp"
#include "freehold/doctor/program.hpp"

namespace freehold::cli::doctor {

// `files`: that the program has mapped as code. `run`: runs it as it is, no longer than so many seconds; it is called at
// most once, and only if there is something to count.
[[nodiscard]] std::vector<OwnAllocator> own_allocators_of(const std::set<std::string>& files,
                                                          const std::function<freehold::doctor::Run(double)>& run,
                                                          double seconds);
// Of one with a switch: calls of malloc as it is, and with all left to malloc.
void set_reach(OwnAllocator& own, double calls, double switched_calls);
// A sentence for each that a preload does not reach. Needs what was recorded, where nothing could be counted.
[[nodiscard]] std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis);
// The treatments that the runtimes offer themselves: all is left to malloc, and this malloc is Freehold's.
void add_switches(std::vector<freehold::doctor::Variant>& variants, const std::vector<OwnAllocator>& own);

}  // namespace freehold::cli::doctor
