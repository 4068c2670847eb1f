// SPDX-License-Identifier: MIT
// The engine's figures: how much it holds and why. Plain data with a fixed layout and no pointers, so that it can be copied
// out of a dying process through a file descriptor. The command turns it into JSON (cli/stats_json): the engine links no
// library.
#pragma once
#include <cstddef>
#include <cstdint>

namespace freehold::alloc {

inline constexpr std::uint32_t kStatsVersion = 1;
inline constexpr std::size_t kMaxStatsClasses = 96;

struct ClassStats {
  std::uint64_t slot_bytes;  // size of a slot of this class
  std::uint64_t spans;       // spans that belong to the class now
  std::uint64_t slots;       // slots in those spans
  std::uint64_t free_slots;  // free in the shared bitmap; slots in thread caches count as used
  std::uint64_t refills;     // times a cache took slots from the bitmap, finished threads included
  std::uint64_t drains;      // times a cache gave slots back
};

struct Stats {
  std::uint32_t version;      // kStatsVersion
  std::uint32_t class_count;  // valid entries of classes[]
  // Address space and memory, in bytes.
  std::uint64_t reserved_bytes;      // address space reserved for the arena
  std::uint64_t committed_bytes;     // of it, readable and writable
  std::uint64_t small_span_bytes;    // spans that belong to a size class
  std::uint64_t run_bytes;           // page runs in use (blocks above 32 KiB)
  std::uint64_t free_dirty_bytes;    // free spans and runs that still hold pages: retained for reuse until purged
  std::uint64_t direct_bytes;        // blocks too large for the arena, mapped one by one
  std::uint64_t metadata_bytes;      // upper bound of the pages of bitmaps, caches and maps
  std::uint64_t cached_limit_bytes;  // sum of what thread caches are allowed to hold now
  std::uint64_t purged_bytes;        // given back to the system since the start
  // Events since the start.
  std::uint64_t purge_calls;   // madvise calls that gave memory back
  std::uint64_t span_claims;   // spans given to a class
  std::uint64_t span_returns;  // wholly free spans taken back from a class
  std::uint64_t lock_waits;    // times a thread had to wait for one of the engine's locks
  std::uint64_t threads;       // thread caches alive
  std::uint64_t peak_threads;
  std::uint64_t late_frees;  // frees after a thread's cache was gone
  // Configuration in force.
  std::uint32_t cpus;    // CPUs that may be used
  char cpus_source[28];  // what decided: "affinity", "cgroup", "online"
  char cache_mode[16];   // "thread" or "cpu"
  char huge_pages[16];   // "off", "auto" or "on"
  ClassStats classes[kMaxStatsClasses];
};

}  // namespace freehold::alloc
