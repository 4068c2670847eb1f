// SPDX-License-Identifier: MIT
// The scaling article's other solution: N threads submit their iterations to the N worker processes of a ProcessPool, one
// task for each iteration. The workers are this executable again, as `freehold scale-pool-worker`, with the same preloaded
// allocator.
#pragma once
#include <cstdint>

#include "freehold/process/task_word.hpp"
#include "lab/scale/job.hpp"

namespace freehold::cli::scale {

inline constexpr const char* kPoolWorkerCommand = "scale-pool-worker";
inline constexpr std::uint32_t kMostPoolWorkers = process::TaskWord::kMaxWorkers;

// The time runs from the first submission to the last result; all workers are up before. CPU time and peak memory are the
// sums over clients and workers. Throws std::exception if the pool or a task fails.
void run_in_pool(const Job& job, GroupReport& report);

int pool_worker_main();

}  // namespace freehold::cli::scale
