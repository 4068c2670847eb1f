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

// X(name here and in JSON, name in freehold_stats_t): freehold/malloc.h says what each is. Bytes, or counts since the start.
#define FREEHOLD_FIGURES(X)                 \
  X(reserved_bytes, reserved_bytes)         \
  X(committed_bytes, committed_bytes)       \
  X(small_span_bytes, small_span_bytes)     \
  X(run_bytes, run_bytes)                   \
  X(free_dirty_bytes, retained_bytes)       \
  X(direct_bytes, direct_bytes)             \
  X(metadata_bytes, metadata_bytes)         \
  X(cached_limit_bytes, cached_limit_bytes) \
  X(purged_bytes, purged_bytes)             \
  X(purge_calls, purge_calls)               \
  X(span_claims, span_claims)               \
  X(span_returns, span_returns)             \
  X(lock_waits, lock_waits)                 \
  X(threads, threads)                       \
  X(peak_threads, peak_threads)             \
  X(late_frees, late_frees)

// The same of a size class, and of freehold_class_stats_t.
#define FREEHOLD_CLASS_FIGURES(X) X(slot_bytes) X(spans) X(slots) X(free_slots) X(refills) X(drains)

struct ClassStats {
#define FREEHOLD_MEMBER(name) std::uint64_t name;
  FREEHOLD_CLASS_FIGURES(FREEHOLD_MEMBER)
#undef FREEHOLD_MEMBER
};

struct Stats {
  std::uint32_t version;      // kStatsVersion
  std::uint32_t class_count;  // valid entries of classes[]
#define FREEHOLD_MEMBER(name, public_name) std::uint64_t name;
  FREEHOLD_FIGURES(FREEHOLD_MEMBER)
#undef FREEHOLD_MEMBER
  // Configuration in force.
  std::uint32_t cpus;    // CPUs that may be used
  char cpus_source[28];  // what decided: "affinity", "cgroup", "online"
  char cache_mode[16];   // "thread" or "cpu"
  char huge_pages[16];   // "off", "auto" or "on"
  ClassStats classes[kMaxStatsClasses];
  // For glibc's reports alone.
  std::uint64_t direct_blocks;  // blocks in direct_bytes
  std::uint64_t kept_bytes;     // the part of free_dirty_bytes in mappings outside the arena
};

}  // namespace freehold::alloc
