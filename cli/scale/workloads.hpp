// The scaling article's four workloads and a fifth, on whatever malloc the process has. Each does a worker's share of a
// job's iterations between lane.start() and lane.finish(), and returns whether its own arithmetic came out right.
#pragma once
#include "cli/scale/job.hpp"
#include "cli/support/crew.hpp"

namespace freehold::cli::scale {

// Arithmetic over a table that stays in the first-level cache: what the CPUs can do when nothing is shared.
bool compute(const Job& job, Lane& lane);
// A linked list of chars, built and destroyed, again and again: the allocator and little else.
bool allocate(const Job& job, Lane& lane);
// Both, about half of the time each.
bool mixed(const Job& job, Lane& lane);
// Reads and writes every word of a buffer larger than the caches: what the memory bus can do.
bool memory(const Job& job, Lane& lane);

// allocate, in somebody else's component: it holds its one lock all the while.
bool locked(const Job& job, Lane& lane);

}  // namespace freehold::cli::scale
