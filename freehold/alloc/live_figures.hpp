// SPDX-License-Identifier: MIT
// Where the engine's figures lie, for readers outside the process: they read them from its memory while it runs, without
// stopping or signalling it. Only figures that the engine keeps as relaxed atomics anyway: the directory is filled once at
// the start, and no malloc or free knows of it. Figures that take a lock or a walk (size classes, chunks, metadata) are not
// here; Core::stats() has them.
//
// A reader finds the directory by its mark in the writable data of the program or of libfreehold.so. The mark depends on the
// directory's address: no copy of it and no constant in a file looks like one.
//
// The layout is fixed for a version. Figures are appended; a reader skips those that it does not know.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

inline constexpr std::uint32_t kLiveVersion = 1;
inline constexpr std::uint32_t kMostLiveEntries = 32;
inline constexpr std::size_t kLiveAlignment = 64;

// Each is the sum of its entries; signed where a moment's sum may be negative, between two updates that belong together.
// Bytes unless it says else.
enum class LiveFigure : std::uint32_t {
  kSlotBytes,       // slots that caches took and did not give back: in use, or cached; up to 64 KiB of each thread's late
  kClassSpanBytes,  // spans that belong to a size class
  kReturnedBytes,   // of those, pages that went back to the system
  kRunBytes,        // blocks above 32 KiB that lie in the arena
  kFreeDirtyBytes,  // free spans that may hold pages
  kDirectBytes,     // blocks with a mapping of their own
  kKeptBytes,       // mappings of freed blocks that are kept for the next
  kPurgedBytes,     // given back to the system since the start
  kPurgeCalls,      // system calls that did
  kSpanClaims,      // spans given to a class since the start
  kSpanReturns,     // wholly free spans taken back from one
  kThreads,         // thread caches alive
  kLateFrees,       // frees after a thread's cache was gone
  kLimitBytes,      // 0: none
  kCacheRoomBytes,  // what caches may still take of the common budget
  kCount
};

// `count` integers of `bytes` bytes each, `stride` bytes apart.
struct LiveEntry {
  LiveFigure figure;
  std::uint32_t bytes;
  std::uint32_t count;
  std::uint32_t stride;
  std::uint64_t address;
};

struct alignas(kLiveAlignment) LiveDirectory {
  // release: pairs with the order in which the reader copies, mark first; publishes the rest.
  std::atomic<std::uint64_t> mark[2];
  std::uint32_t version;
  std::uint32_t count;  // of entries
  LiveEntry entries[kMostLiveEntries];
};
static_assert(sizeof(LiveEntry) == 24 && sizeof(LiveDirectory) == 832);
static_assert(offsetof(LiveDirectory, version) == 16 && offsetof(LiveDirectory, entries) == 24);

// The two halves of the mark of a directory at `address`. Random numbers.
[[nodiscard]] constexpr std::uint64_t live_mark(unsigned half, std::uint64_t address) noexcept {
  return address ^ (half == 0 ? 0x9d1c5be2a7f34680U : 0x3b86e0f4c25d917aU);
}

}  // namespace freehold::alloc
