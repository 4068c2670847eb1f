// SPDX-License-Identifier: MIT
// Lists of named things (private heaps, pools) for readers outside the process: where the list begins, how a record is read,
// and whether it was changed during the reading. The process keeps the list anyway; publishing it costs a few stores when
// the first thing comes.
//
// A reader finds the directory by its mark in the writable data of the program or library, as that of the engine
// (alloc/live_figures.hpp). Each shared object has its lists. Mark and version stay where they are for ever.
//
//   Invariant: what the directory says of the layout never changes once the mark is there.
//
// publish(): one thread. All else is data.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "freehold/sync/change_count.hpp"

namespace freehold::sync {

inline constexpr std::uint32_t kLiveListVersion = 1;
inline constexpr std::size_t kLiveListAlignment = 64;

// kProfile is no list: of the sampled heap profile, only `changes` and `layout` count (profile/live_profile.hpp).
enum class LiveList : std::uint32_t { kHeaps = 1, kPools = 2, kProfile = 3 };

struct alignas(kLiveListAlignment) LiveListDirectory {
  // release: pairs with the order in which the reader copies, mark first; publishes the rest.
  std::atomic<std::uint64_t> mark[2];
  std::uint32_t version;
  LiveList kind;
  std::uint64_t first;         // address of the pointer to the first record; null: the list is empty
  std::uint64_t changes;       // address of the number of a ChangeCount
  std::uint64_t layout;        // address of what more a reader must know; 0: nothing
  std::uint32_t layout_bytes;  // size of the layout
  std::uint32_t next;          // from a record's begin: the pointer to the next one
  std::uint32_t data;          // from a record's begin: what its kind has
  std::uint32_t data_bytes;    // size of the data
};
static_assert(sizeof(LiveListDirectory) == 64 && offsetof(LiveListDirectory, version) == 16);

// The two halves of the mark of a directory at `address`. Random numbers.
[[nodiscard]] constexpr std::uint64_t live_list_mark(unsigned half, std::uint64_t address) noexcept {
  return address ^ (half == 0 ? 0x5e0b7f319c64d2a8U : 0xe47a12c9380f6bd5U);
}

// Makes the directory, whose other members are complete, visible to readers.
inline void publish(LiveListDirectory& directory) noexcept {
  directory.version = kLiveListVersion;
  for (unsigned half = 0; half < 2; ++half)
    directory.mark[half].store(live_list_mark(half, reinterpret_cast<std::uintptr_t>(&directory)),
                               std::memory_order_release);
}

}  // namespace freehold::sync
