// SPDX-License-Identifier: MIT
// The size of one unit of each workload. A unit is small (about 0.01 to 0.5 ms on today's machines), so that a number of
// units can fill any duration. It is a whole piece of work: it builds and destroys a list, or hands a batch over.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::cli::scale {

inline constexpr std::size_t kComputeTable = 512;       // words: 4 KiB, stays in the first-level cache
inline constexpr std::uint64_t kComputeRounds = 5000;   // rounds over that table in a unit
inline constexpr std::uint64_t kListNodes = 10'000;     // chars in a list: 320 KB with glibc, leaves the first-level cache
inline constexpr std::uint64_t kMixedNodes = 1'000;     // chars in a list of the mixed workload ...
inline constexpr std::uint64_t kMixedRounds = 12'000;   // ... and rounds beside it: about half of the time each, with glibc
inline constexpr std::size_t kMemoryBuffer = 4u << 20;  // words of a worker: 32 MiB, more than its share of any cache
inline constexpr std::uint64_t kMemoryWords = 8'192;    // words read and written in a unit: 64 KiB
inline constexpr std::uint64_t kIsolationBlocks = 1'000;
inline constexpr std::uint64_t kHandoverBatch = 64;  // blocks published at a time, so that the ring costs little beside them
inline constexpr std::uint64_t kHandoverBlocks = 16 * kHandoverBatch;

}  // namespace freehold::cli::scale
