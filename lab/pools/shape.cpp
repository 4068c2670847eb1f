// SPDX-License-Identifier: MIT
#include "lab/pools/shape.hpp"

#include <algorithm>

namespace freehold::cli::pools {
namespace {

constexpr std::uint64_t kCrcSlots = 16'384;
constexpr std::uint64_t kLeastPerThread = 1024;
// At 99% a thread's round is at least this long.
constexpr std::uint64_t kLeastBatch = 32;

std::uint64_t free_slots(const Job& job) {
  const bool all_at_once = job.test == Trial::kLong || job.test == Trial::kRandom;
  const std::uint64_t needed = job.operations * (all_at_once ? job.threads : 1);
  return needed + needed / 16 + kLeastPerThread * job.threads;
}

std::uint64_t slots_of(const Job& job) {
  if (job.test == Trial::kCrc) return kCrcSlots;
  switch (job.context) {
    case Context::kFresh: return free_slots(job);
    case Context::kPolluted:
    case Context::kHalfUsed: return 2 * free_slots(job);
    case Context::kAlmostFull: return std::max(job.operations, 2 * kLeastBatch * kAlmostFullOneIn * job.threads);
  }
  __builtin_unreachable();
}

}  // namespace

pool::PoolShape shape_of(const Job& job) {
  return {.slots = slots_of(job),
          .slot_bytes = job.slot_bytes + (job.test == Trial::kCrc ? kCrcHeader : 0),
          .shards = job.shards};
}

std::uint64_t batch_of(const Job& job) {
  if (job.context != Context::kAlmostFull) return job.operations;
  return std::min(job.operations, slots_of(job) / kAlmostFullOneIn / (2 * job.threads));
}

bool is_used(Context context, std::size_t i, std::size_t count) {
  switch (context) {
    case Context::kFresh: return false;
    case Context::kPolluted: return i % 2 == 0;
    case Context::kHalfUsed: return i < count / 2;
    case Context::kAlmostFull: return i % kAlmostFullOneIn != 0;
  }
  __builtin_unreachable();
}

}  // namespace freehold::cli::pools
