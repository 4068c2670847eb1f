// The scaling article's other way out: N threads have their iterations done by the N worker processes of a ProcessPool, one
// task for each. The workers are this executable again, as `freehold scale-pool-worker`; a preloaded allocator is theirs,
// too.
#pragma once
#include <cstdint>

#include "cli/scale/job.hpp"
#include "freehold/process/task_word.hpp"

namespace freehold::cli::scale {

inline constexpr const char* kPoolWorkerCommand = "scale-pool-worker";
inline constexpr std::uint32_t kMostPoolWorkers = process::TaskWord::kMaxWorkers;

// Times run from the first submission to the last result, with all workers up before; CPU time and peak memory are those
// of the clients and of the workers together. Throws std::exception if the pool or a task fails.
void run_in_pool(const Job& job, GroupReport& report);

int pool_worker_main();

}  // namespace freehold::cli::scale
