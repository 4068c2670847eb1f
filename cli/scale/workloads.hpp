// The scaling article's four workloads and a fifth, on whatever malloc the process has. Each does a worker's share of a
// job's iterations between worker.start() and worker.finish(), and returns whether its own arithmetic came out right.
#pragma once
#include "cli/experiment/worker_group.hpp"
#include "cli/scale/job.hpp"

namespace freehold::cli::scale {

// Arithmetic over a table that stays in the first-level cache: what the CPUs can do when nothing is shared.
bool compute(const Job& job, GroupWorker& worker);
// A linked list of chars, built and destroyed, again and again: the allocator and little else.
bool allocate(const Job& job, GroupWorker& worker);
// Both, about half of the time each.
bool mixed(const Job& job, GroupWorker& worker);
// Reads and writes every word of a buffer larger than the caches: what the memory bus can do.
bool memory(const Job& job, GroupWorker& worker);

// allocate, in somebody else's component: it holds its one lock all the while.
bool locked(const Job& job, GroupWorker& worker);

}  // namespace freehold::cli::scale
