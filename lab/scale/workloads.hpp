// SPDX-License-Identifier: MIT
// The scaling article's four workloads and a fifth, on the malloc of the process. Each does a worker's share of the job's
// iterations between worker.start() and worker.finish(), and returns whether its results were right.
#pragma once
#include "cli/support/worker_group.hpp"
#include "lab/scale/job.hpp"

namespace freehold::cli::scale {

// Arithmetic over a table that stays in the first-level cache: the CPUs' speed when nothing is shared.
bool compute(const Job& job, GroupWorker& worker);
// A linked list of chars, built and destroyed, again and again: the allocator and little else.
bool allocate(const Job& job, GroupWorker& worker);
// Both, about half of the time each.
bool mixed(const Job& job, GroupWorker& worker);
// Reads and writes every word of a buffer larger than the caches: the speed of the memory bus.
bool memory(const Job& job, GroupWorker& worker);

// allocate, in a component that holds its one lock all the time.
bool object(const Job& job, GroupWorker& worker);
bool locked(const Job& job, GroupWorker& worker);

}  // namespace freehold::cli::scale
