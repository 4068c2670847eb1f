// SPDX-License-Identifier: MIT
// The layout of a private heap, by which a reader outside the process reads its figures without a lock: each was true at its
// own moment. Plain data, filled once with the first heap; see sync/live_list.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::heap {

inline constexpr std::size_t kMostLiveHeapClasses = 96;

// A heap's record in the list, from RegisteredHeap.
struct LiveHeap {
  std::uint64_t heap;   // address
  std::uint64_t name;   // address of a text. Not read from the heap: it may end after its record was read
  std::uint64_t calls;  // address: heaps that have others than LiveHeapLayout::calls are of another type
};

struct LiveHeapLayout {
  std::uint64_t calls;
  // Offsets from a heap's begin: integers of 8 bytes.
  std::uint32_t limit_bytes, used_bytes, held_bytes, slabs, large_blocks, large_bytes, conflicts;
  // A pointer to the free slots; null before the first block.
  std::uint32_t core;
  // Offsets from there: the central bins, and the number of shards (4 bytes), of pointers to them, null where none was made.
  std::uint32_t central_bins, shard_count, shards;
  std::uint32_t shard_bins;  // from a shard's begin
  // Distances from one bin to the next of the next class, and in it the number of blocks in use, which may be negative: a
  // sum counts.
  std::uint32_t central_stride, central_live, shard_stride, shard_live;
  // Offsets in a heap that has ended before its blocks, of other calls: from its begin, integers of 8 bytes.
  std::uint64_t ended_calls;
  std::uint32_t ended_blocks, ended_bytes, ended_held_bytes;
  std::uint32_t classes;
  std::uint32_t slot_bytes[kMostLiveHeapClasses];
};

}  // namespace freehold::heap
