// SPDX-License-Identifier: MIT
#include "lab/pools/shape.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>

#include "lab/experiment/memory.hpp"

namespace freehold::lab::pools {
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
  return {.slots = static_cast<std::size_t>(slots_of(job)),
          .slot_bytes = job.slot_bytes + (job.test == Trial::kCrc ? kCrcHeader : 0),
          .shards = job.shards};
}

std::uint64_t batch_of(const Job& job) {
  if (job.context != Context::kAlmostFull) return job.operations;
  return std::min(job.operations, slots_of(job) / kAlmostFullOneIn / (2 * job.threads));
}

std::uint64_t live_of(const Job& job) { return std::bit_floor(slots_of(job) / 4); }

double scatter_of(const std::vector<void*>& slots, std::uint32_t slot_bytes) {
  constexpr std::size_t kPage = 4096, kAlignment = alignof(std::max_align_t);
  std::set<std::uintptr_t> pages;
  for (const void* slot : slots) pages.insert(reinterpret_cast<std::uintptr_t>(slot) / kPage);
  const std::size_t bytes = slots.size() * ((slot_bytes + kAlignment - 1) / kAlignment * kAlignment);
  return static_cast<double>(pages.size()) / static_cast<double>((bytes + kPage - 1) / kPage);
}

double heap_bookkeeping(std::uint32_t slot_bytes) {
  std::vector<std::unique_ptr<char[]>> blocks(4096);
  const std::size_t before = heap_bytes();
  for (auto& block : blocks) block = std::make_unique<char[]>(slot_bytes);
  return static_cast<double>(heap_bytes() - before) / static_cast<double>(blocks.size()) - slot_bytes;
}

std::uint64_t kept_of(const Job& job) { return job.context == Context::kFresh ? 0 : job.operations / 2; }

bool is_used(Context context, std::size_t i, std::size_t count) {
  switch (context) {
    case Context::kFresh: return false;
    case Context::kPolluted: return i % 2 == 0;
    case Context::kHalfUsed: return i < count / 2;
    case Context::kAlmostFull: return i % kAlmostFullOneIn != 0;
  }
  __builtin_unreachable();
}

}  // namespace freehold::lab::pools
