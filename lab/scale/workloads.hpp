// SPDX-License-Identifier: MIT
// The scaling article's four workloads and others, on the malloc of the process. Each does a worker's share of the job's
// iterations between worker.start() and worker.finish(), and returns whether its results were right.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/scale/job.hpp"
#include "tools/support/worker_group.hpp"

namespace freehold::lab::scale {

// Arithmetic over a table that stays in the first-level cache: the CPUs' speed when nothing is shared.
bool compute(const Job& job, GroupWorker& worker);
// A linked list of chars, built and destroyed, again and again: the allocator and little else.
bool allocate(const Job& job, GroupWorker& worker);
// Both, about half of the time each.
bool mixed(const Job& job, GroupWorker& worker);
// Reads and writes every word of a block that other threads may have as well: the speed of the memory bus.
bool memory(const Job& job, GroupWorker& worker, std::vector<std::uint64_t>& block);

// allocate, each list in a heap that ends with it; the same by a scope, with a plain list; in one heap that was reserved,
// and is emptied without freeing a node; in a heap of the worker's; in a component that holds its one lock all the time.
bool object(const Job& job, GroupWorker& worker);
bool scoped(const Job& job, GroupWorker& worker);
bool reserved(const Job& job, GroupWorker& worker);
bool worker_heap(const Job& job, GroupWorker& worker);
bool locked(const Job& job, GroupWorker& worker);

// The size of one unit of each workload. A unit is small (about 0.01 to 0.5 ms on today's machines), so that a number of
// units can fill any duration. It is a whole piece of work: it builds and destroys a list, or hands a batch over.
inline constexpr std::size_t kComputeTable = 512;       // words: 4 KiB, stays in the first-level cache
inline constexpr std::uint64_t kComputeRounds = 5000;   // rounds over that table in a unit
inline constexpr std::uint64_t kListNodes = 10'000;     // chars in a list: 320 KB with glibc, leaves the first-level cache
inline constexpr std::uint64_t kMixedNodes = 1'000;     // chars in a list of the mixed workload ...
inline constexpr std::uint64_t kMixedRounds = 12'000;   // ... and rounds beside it: about half of the time each, with glibc
inline constexpr std::size_t kMemoryBuffer = 4u << 20;  // words of a block: 32 MiB, more than its share of any cache
inline constexpr std::uint64_t kMemoryWords = 8'192;    // words read and written in a unit: 64 KiB
inline constexpr std::uint64_t kIsolationBlocks = 1'000;
inline constexpr std::uint64_t kHandoverBatch = 64;  // blocks published at a time, so that the ring costs little beside them
inline constexpr std::uint64_t kHandoverBlocks = 16 * kHandoverBatch;

}  // namespace freehold::lab::scale
