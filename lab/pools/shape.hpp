// SPDX-License-Identifier: MIT
// The size of the pool that a job needs, and the slots that are in use before the clock starts.
#pragma once
#include <cstdint>
#include <vector>

#include "freehold/pool/concept.hpp"
#include "lab/pools/job.hpp"

namespace freehold::lab::pools {

inline constexpr std::uint32_t kAlmostFullOneIn = 100;  // one slot in so many is free in an almost full pool
inline constexpr std::uint64_t kRingBatch = 64;         // blocks published at a time
// Bytes of a buffer of article 1's experiment besides its contents: 16 that a pool may use for links, the sum, a mark.
inline constexpr std::uint32_t kCrcHeader = 24;

// The pool of a job. Pools that cache slots for threads may not find the last one: there is a sixteenth more than is needed.
[[nodiscard]] pool::PoolShape shape_of(const Job& job);
// Pairs of a thread in one round of acquiring and releasing: all of them, or as many as an almost full pool has.
[[nodiscard]] std::uint64_t batch_of(const Job& job);
// Slots that are live while one after the other is replaced: a power of two, between an eighth and a quarter of the pool's.
[[nodiscard]] std::uint64_t live_of(const Job& job);
// Pages that `slots` lie in, for each page that would hold them all.
[[nodiscard]] double scatter_of(const std::vector<void*>& slots, std::uint32_t slot_bytes);
// Bytes that malloc takes for a block beside the slot.
[[nodiscard]] double heap_bookkeeping(std::uint32_t slot_bytes);
// Blocks that each thread keeps of a pool without a capacity: half of those that it is to allocate, but none if fresh.
[[nodiscard]] std::uint64_t kept_of(const Job& job);
// Returns whether the slot that is number `i` in the order of addresses, of `count`, is in use when the test begins.
[[nodiscard]] bool is_used(Context context, std::size_t i, std::size_t count);

}  // namespace freehold::lab::pools
